#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <reel/data/source.h>
#include <reel/detail/immovable.h>
#include <reel/error.h>
#include <reel/named_tensor.h>

namespace reel::data {

/// An error: an item of a Loader cannot be read, transformed or collated. `what()` names the item by its source, or by
/// its index; the exception that was thrown is nested in this one, for `std::rethrow_if_nested`.
class LoadError : public Error {
  using Error::Error;
};

}  // namespace reel::data

namespace reel::detail {

/// A batch that is being made, as the functions of a Loader see it.
class BatchInProgress {
 public:
  /// The indices of the batch's items.
  virtual std::span<const std::int64_t> indices() const = 0;
  /// Is called before the item at a position of the batch is read: its random numbers begin. Throws if the loader ends.
  virtual void begin_item(std::size_t position) = 0;
  /// Is called before the items are collated: the batch's random numbers begin.
  virtual void begin_collate() = 0;

 protected:
  ~BatchInProgress() = default;
};

/// Appends the length of each of the items with the given indices.
using LengthFunction = std::function<void(std::span<const std::int64_t> items, std::vector<std::int64_t>& lengths)>;

/// The dataset and the functions of a Loader, with their types erased.
struct LoaderFunctions {
  std::function<std::int64_t()> size;                           ///< the number of items
  LengthFunction length = {};                                   ///< null: not bucketed, or known_lengths
  std::optional<std::vector<std::int64_t>> known_lengths = {};  ///< of all items, in place of `length`
  std::function<std::shared_ptr<void>(BatchInProgress&)> make;  ///< makes a batch
  std::function<data::Source(std::int64_t)> source;             ///< of the item at an index
};

/// The options of a Loader that do not depend on the type of its items.
struct LoaderSettings {
  std::int64_t batch_size = 1;      ///< items of a batch
  bool shuffle = false;             ///< whether each epoch has an order of its own
  std::uint64_t seed = 0;           ///< of all random numbers
  bool drop_last = false;           ///< whether an incomplete batch is left out
  int workers = 0;                  ///< threads; 0: that of the caller
  std::int64_t prefetch = 0;        ///< batches that are made ahead; 0: two for each worker
  std::int64_t bucket_batches = 0;  ///< batches of a window that is sorted by length; 0: none
  std::int64_t most_elements = 0;   ///< the most elements of a padded batch; 0: any number
  std::int64_t shard = 0;           ///< which part of each batch is made
  std::int64_t shards = 1;          ///< the number of parts of a batch
};

/// Orders the items of a Loader, makes its batches in threads, and hands them out in order.
class LoaderEngine : Immovable {
 public:
  /// Throws: Error for settings out of range.
  LoaderEngine(LoaderFunctions functions, const LoaderSettings& settings, Location where);
  /// Ends the threads.
  ~LoaderEngine();

  /// The next batch; null at the end of the epoch, after which the next one begins. Throws: what the functions throw.
  std::shared_ptr<void> next();
  /// The epoch, from 0.
  std::int64_t epoch() const;
  /// The batches that were handed out in this epoch.
  std::int64_t position() const;
  /// The number of batches of an epoch; −1 if it depends on the lengths.
  std::int64_t batches() const;
  /// The indices of the batch that was handed out last.
  const std::vector<std::int64_t>& indices() const;
  /// The sources of the batch that was handed out last.
  std::vector<data::Source> sources() const;
  /// Seconds that `next` has taken in all.
  double seconds_waited() const;
  /// Goes to the beginning of an epoch. Throws: Error for a negative one.
  void start_epoch(std::int64_t epoch, Location where);
  /// The seed, epoch and position, and the settings that they depend on.
  std::vector<NamedTensor> state() const;
  /// Goes to the position of a state. Throws: Error for a state of other settings or of another number of items.
  void load_state(std::span<const NamedTensor> state, Location where);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace reel::detail
