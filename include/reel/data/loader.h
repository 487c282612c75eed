#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/data/dataset.h>
#include <reel/data/loader_engine.h>

namespace reel::data {

/// Options of a Loader of items of the given type.
template <class Item>
struct LoaderOptions {
  std::int64_t batch_size = 32;  ///< the number of items of a batch, at least 1; default 32
  bool shuffle = false;          ///< whether each epoch has a random order of its own; default false
  std::uint64_t seed = 0;        ///< of the orders and of the items' random numbers; default 0
  /// Whether the last batch is left out if it has fewer than `batch_size` items. Default false.
  bool drop_last = false;
  /// The number of threads that make batches ahead; 0 (default): the caller's thread makes each when it asks for it.
  int workers = 0;
  /// The most batches that are made ahead, or being made, with workers. 0 (default): two for each worker.
  std::int64_t prefetch = 0;
  /// The length of an item, at least 0: items of similar length then share a batch. Called once more for each item of
  /// an epoch, before it is read for its batch. Default: none.
  std::function<std::int64_t(const Item&)> length{};  // g++ 12 fails at "= {}" in a template
  /// In place of `length`: the lengths of all items, in order, where they are known without reading an item. Default:
  /// none.
  std::optional<std::vector<std::int64_t>> lengths{};
  /// With lengths: the items of this many batches, in order, are sorted by length and cut into batches, which are
  /// shuffled if `shuffle` is true; at least 1. Default 100.
  std::int64_t bucket_batches = 100;
  /// With lengths: the most elements of a batch that is padded to its longest item, so that batches of long items have
  /// fewer of them; a single longer item is a batch of its own. 0 (default): no bound.
  std::int64_t most_elements = 0;
  /// The part of each batch that this loader gives, in [0, shards); default 0. With as many loaders as `shards`, each batch
  /// is divided among them as evenly as its items allow, so that a part may have none; its `collate` then gets no items.
  /// With lengths the parts also have about equal sums of them.
  std::int64_t shard = 0;
  /// The number of parts into which each batch is divided, at least 1; default 1. The order and `state()` do not depend
  /// on it, so that a state can be loaded with another number of parts.
  std::int64_t shards = 1;
};

/// Mini-batches of a dataset, in order or shuffled, made by the caller's thread or ahead of it by workers. Iterating it
/// once gives an epoch, or what remains of one after `break` or `load_state`:
///
///     data::Loader loader(sentences, collate, {.batch_size = 16, .shuffle = true, .seed = 1, .workers = 2});
///     while (loader.epoch() < 10)
///       for (auto& batch : loader) train_step(batch);
///
/// A batch is a `std::vector<Item>`, or what the function `collate` makes of one. Order and random numbers depend on
/// the seed, the epoch and the item's index alone: batches are equal for any number of workers. Batches that workers
/// have made but the caller has not received are neither lost nor repeated by `state` and `load_state`.
///
/// Functions of the dataset, `collate` and `length` run in the workers, where ops use one thread, create tensors on the
/// default device of the caller, and record on no tape. An exception that they throw is thrown where the batch would
/// have been received, as a LoadError that names the item; MemoryError, std::bad_alloc, a Cancellation such as
/// `train::Interrupted`, and what is no std::exception keep their type. The loader then stays before that batch.
template <class Item, class Batch = std::vector<Item>>
class Loader {
 public:
  /// Batches of items as they are. An lvalue dataset is referred to and must outlive the loader; an rvalue is moved in.
  /// Throws: Error for options out of range.
  template <Dataset D>
    requires std::same_as<ItemOf<D>, Item> && std::same_as<Batch, std::vector<Item>>
  explicit Loader(D&& dataset, LoaderOptions<Item> options = {}, Location where = Location::here())
      : Loader(
            std::forward<D>(dataset), [](std::vector<Item> items) { return items; }, std::move(options), where) {}
  /// Batches `collate(items)` of a `std::vector<Item>`. An lvalue dataset is referred to and must outlive the loader; an
  /// rvalue is moved in.
  /// Throws: Error for options out of range.
  template <Dataset D, class Collate>
    requires std::same_as<ItemOf<D>, Item> && std::is_invocable_r_v<Batch, const Collate&, std::vector<Item>>
  Loader(D&& dataset, Collate collate, LoaderOptions<Item> options = {}, Location where = Location::here())
      : engine_(std::make_unique<detail::LoaderEngine>(
            functions_of(detail::HeldDataset<D>(std::forward<D>(dataset)), std::move(collate), options),
            settings_of(options), where)) {}

  /// The end of an epoch.
  struct End {};
  /// Iterates over the batches of an epoch; there is one at a time.
  class Iterator {
   public:
    /// The batch, which may be moved from. It is valid until the next one is asked for.
    Batch& operator*() const { return *loader_->batch_; }
    /// The batch's members.
    Batch* operator->() const { return loader_->batch_.get(); }
    /// Receives the next batch. Throws: LoadError for one that cannot be made.
    Iterator& operator++() {
      loader_->advance();
      return *this;
    }
    /// True at the end of the epoch.
    bool operator==(End) const { return !loader_->batch_; }

   private:
    friend class Loader;
    explicit Iterator(Loader& loader) : loader_(&loader) {}
    Loader* loader_;
  };
  /// Receives the first batch of the epoch, or of what remains of it. Throws: LoadError for one that cannot be made;
  /// Error if the dataset has another size than when the loader was made.
  Iterator begin() {
    advance();
    return Iterator(*this);
  }
  /// The end of the epoch. When the iteration has come to it, the next epoch begins.
  End end() const { return {}; }

  /// The present epoch, from 0.
  std::int64_t epoch() const { return engine_->epoch(); }
  /// The number of batches that were received in the present epoch.
  std::int64_t position() const { return engine_->position(); }
  /// The number of batches of an epoch; nothing with `most_elements`, where it depends on the lengths.
  std::optional<std::int64_t> batches() const {
    std::int64_t count = engine_->batches();
    return count < 0 ? std::nullopt : std::optional(count);
  }
  /// The dataset's indices of the items of the batch that was received last.
  const std::vector<std::int64_t>& indices() const { return engine_->indices(); }
  /// The lines that the items of the batch that was received last were read from; unknown for items that have none. For
  /// `train::check_loss`.
  BatchSources sources() const {
    BatchSources found{engine_->sources()};
    if constexpr (std::convertible_to<const Batch&, Tensor>) {
      if (batch_) found.tensors = {*batch_};
    } else if constexpr (requires(const Batch& batch) { std::vector<Tensor>{batch.x, batch.y}; }) {
      if (batch_) found.tensors = {batch_->x, batch_->y};
    }
    return found;
  }
  /// The seconds that the caller has waited for batches, since the loader was made; without workers those that making
  /// them took.
  double seconds_waited() const { return engine_->seconds_waited(); }

  /// Goes to the beginning of an epoch. Throws: Error for a negative one.
  void start_epoch(std::int64_t epoch, Location where = Location::here()) { engine_->start_epoch(epoch, where); }
  /// The seed, the epoch, the position in it, and the options that the order depends on: a few numbers, whatever the
  /// size of the dataset.
  std::vector<NamedTensor> state(Location where = Location::here()) const {
    CallerScope caller(where);
    return engine_->state();
  }
  /// Continues from what `state()` gave, also with another number of workers: the next iteration gives the batches of
  /// the epoch that had not been received. Takes a time that does not depend on the size of the dataset; with lengths,
  /// one window is sorted again.
  /// Throws: Error for a state of other options or of a dataset of another size, and for a name that is missing or
  /// unknown; ShapeError or DTypeError for a tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here()) {
    engine_->load_state(state, where);
  }
  /// Continues from what `state()` gave, also with another number of workers: the next iteration gives the batches of
  /// the epoch that had not been received. Takes a time that does not depend on the size of the dataset; with lengths,
  /// one window is sorted again.
  /// Throws: Error for a state of other options or of a dataset of another size, and for a name that is missing or
  /// unknown; ShapeError or DTypeError for a tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here()) {
    engine_->load_state(std::span<const NamedTensor>(state), where);
  }

 private:
  void advance() {
    batch_.reset();  // first, so that its memory can be used again
    batch_ = std::static_pointer_cast<Batch>(engine_->next());
  }

  // Shuffled items are in no cache, and the processor does not know yet which come next.
  template <class D>
  static void prefetch(const D& dataset, std::span<const std::int64_t> indices) {
    if constexpr (std::is_lvalue_reference_v<ItemReference<D>> && requires { dataset.data(); })
      for (std::int64_t index : indices) __builtin_prefetch(std::addressof(item_at(dataset, index)));
  }
  template <class D, class Collate>
  static detail::LoaderFunctions functions_of(detail::HeldDataset<D> dataset, Collate collate,
                                              const LoaderOptions<Item>& options) {
    detail::LoaderFunctions functions;
    functions.size = [dataset] { return size_of(*dataset); };
    functions.source = [dataset](std::int64_t index) { return source_at(*dataset, index); };
    if (options.length)
      functions.length = [dataset, length = options.length](std::span<const std::int64_t> indices,
                                                            std::vector<std::int64_t>& lengths) {
        prefetch(*dataset, indices);
        for (std::int64_t index : indices) lengths.push_back(length(item_at(*dataset, index)));
      };
    functions.known_lengths = options.lengths;
    functions.make = [dataset, shared = std::make_shared<const Collate>(std::move(collate))](
                         detail::BatchInProgress& batch) -> std::shared_ptr<void> {
      std::span<const std::int64_t> indices = batch.indices();
      std::vector<Item> items;
      items.reserve(indices.size());
      prefetch(*dataset, indices);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        batch.begin_item(i);
        items.push_back(item_at(*dataset, indices[i]));
      }
      batch.begin_collate();
      return std::make_shared<Batch>((*shared)(std::move(items)));
    };
    return functions;
  }
  static detail::LoaderSettings settings_of(const LoaderOptions<Item>& options) {
    return {.batch_size = options.batch_size,
            .shuffle = options.shuffle,
            .seed = options.seed,
            .drop_last = options.drop_last,
            .workers = options.workers,
            .prefetch = options.prefetch,
            .bucket_batches = options.length || options.lengths ? options.bucket_batches : 0,
            .most_elements = options.most_elements,
            .shard = options.shard,
            .shards = options.shards};
  }

  std::unique_ptr<detail::LoaderEngine> engine_;
  std::shared_ptr<Batch> batch_;
};

/// A loader whose batches are vectors of the dataset's items.
template <Dataset D>
Loader(D&&, LoaderOptions<ItemOf<D>> = {}, Location = {}) -> Loader<ItemOf<D>>;
/// A loader whose batches are what `collate` returns.
template <Dataset D, class Collate>
  requires std::invocable<const Collate&, std::vector<ItemOf<D>>>
Loader(D&&, Collate, LoaderOptions<ItemOf<D>> = {}, Location = {})
    -> Loader<ItemOf<D>, std::remove_cvref_t<std::invoke_result_t<const Collate&, std::vector<ItemOf<D>>>>>;

}  // namespace reel::data
