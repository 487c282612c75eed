#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <reel/data/source.h>
#include <reel/location.h>
#include <reel/random.h>

namespace reel::data {

/// A collection of items that are reached by their index: any object with `size()` and `operator[]`, such as a
/// `std::vector`. Both are called on a const object, by several threads at a time if a Loader has workers.
template <class D>
concept Dataset = requires(const std::remove_reference_t<D>& dataset) {
  { dataset.size() } -> std::convertible_to<std::int64_t>;
  dataset[dataset.size()];
};

/// The type that `operator[]` of a dataset returns: an item or a reference to one.
template <Dataset D>
using ItemReference = decltype(std::declval<const std::remove_reference_t<D>&>()[std::declval<const D&>().size()]);
/// The type of a dataset's items.
template <Dataset D>
using ItemOf = std::remove_cvref_t<ItemReference<D>>;

/// The number of items of a dataset.
template <Dataset D>
std::int64_t size_of(const D& dataset) {
  return static_cast<std::int64_t>(dataset.size());
}
/// The item of a dataset at an index in [0, size), which is not checked.
template <Dataset D>
ItemReference<D> item_at(const D& dataset, std::int64_t index) {
  return dataset[static_cast<decltype(dataset.size())>(index)];
}
/// The line that an item was read from: what `dataset.source(index)` returns, else the member `source` of the item, or
/// of what it points to; unknown for other items.
template <Dataset D>
Source source_at(const D& dataset, std::int64_t index) {
  if constexpr (requires { static_cast<Source>(dataset.source(index)); })
    return dataset.source(index);
  else if constexpr (requires { static_cast<Source>(item_at(dataset, index).source); })
    return item_at(dataset, index).source;
  else if constexpr (requires { static_cast<Source>(item_at(dataset, index)->source); })
    return item_at(dataset, index)->source;
  else
    return {};
}

}  // namespace reel::data

namespace reel::detail {

/// A dataset within a view: an lvalue is referred to and must outlive the view, an rvalue is moved in. Copies of the
/// view share it.
template <class D>
class HeldDataset {
 public:
  /// Refers to an lvalue, or moves an rvalue in.
  explicit HeldDataset(D&& dataset) {
    if constexpr (std::is_lvalue_reference_v<D>)
      dataset_ = std::shared_ptr<const Plain>(std::shared_ptr<const Plain>(), &dataset);
    else
      dataset_ = std::make_shared<const Plain>(std::forward<D>(dataset));
  }
  /// The dataset.
  const std::remove_cvref_t<D>& operator*() const { return *dataset_; }

 private:
  using Plain = std::remove_cvref_t<D>;
  std::shared_ptr<const Plain> dataset_;
};

/// Throws: IndexError unless every index is in [0, size).
void check_subset(const std::vector<std::int64_t>& indices, std::int64_t size, Location where);
/// The indices of each part of a split of `size` items. Throws: Error for shares that are not a division.
std::vector<std::vector<std::int64_t>> split_indices(std::int64_t size, const std::vector<double>& shares,
                                                     std::uint64_t seed, Location where);

}  // namespace reel::detail

namespace reel::data {

/// Some items of a dataset, in a given order; see `subset`.
template <class D>
class Subset {
 public:
  /// The items of `dataset` with the given indices, which are not checked.
  Subset(detail::HeldDataset<D> dataset, std::vector<std::int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {}
  /// The number of items.
  std::int64_t size() const { return static_cast<std::int64_t>(indices_.size()); }
  /// The item at an index in [0, size), which is not checked.
  ItemReference<D> operator[](std::int64_t index) const {
    return item_at(*dataset_, indices_[static_cast<std::size_t>(index)]);
  }
  /// The line that the item was read from.
  Source source(std::int64_t index) const { return source_at(*dataset_, indices_[static_cast<std::size_t>(index)]); }

 private:
  detail::HeldDataset<D> dataset_;
  std::vector<std::int64_t> indices_;
};

/// The items of a dataset with the given indices, in this order. An lvalue dataset is referred to and must outlive the
/// view; an rvalue is moved in.
/// Throws: IndexError for an index outside [0, size).
template <Dataset D>
Subset<D> subset(D&& dataset, std::vector<std::int64_t> indices, Location where = Location::here()) {
  detail::check_subset(indices, size_of(dataset), where);
  return {detail::HeldDataset<D>(std::forward<D>(dataset)), std::move(indices)};
}

/// Divides a dataset at random into parts, in the order of `shares`, which are above 0 and sum up to 1:
/// `split(items, {0.9, 0.1}, seed)`. Each item is in exactly one part, the sizes are the shares of the size, rounded so
/// that none is lost, and a seed gives equal parts on every machine. An lvalue dataset is referred to and must outlive
/// the parts; an rvalue is moved in.
/// Throws: Error for shares that are not a division.
template <Dataset D>
std::vector<Subset<D>> split(D&& dataset, const std::vector<double>& shares, std::uint64_t seed,
                             Location where = Location::here()) {
  std::vector<std::vector<std::int64_t>> indices = detail::split_indices(size_of(dataset), shares, seed, where);
  detail::HeldDataset<D> held(std::forward<D>(dataset));
  std::vector<Subset<D>> parts;
  for (std::vector<std::int64_t>& part : indices) parts.emplace_back(held, std::move(part));
  return parts;
}

/// The items of several datasets, one dataset after another; see `concat`.
template <class... D>
class Concatenated {
 public:
  /// The type that `operator[]` returns.
  using Reference = std::common_reference_t<ItemReference<D>...>;

  /// The items of all `datasets`.
  explicit Concatenated(detail::HeldDataset<D>... datasets) : datasets_(std::move(datasets)...) {}
  /// The number of items.
  std::int64_t size() const {
    return std::apply([](const auto&... held) { return (std::int64_t{0} + ... + size_of(*held)); }, datasets_);
  }
  /// The item at an index in [0, size), which is not checked.
  Reference operator[](std::int64_t index) const {
    return at<0, Reference>(index,
                            [](const auto& dataset, std::int64_t i) -> Reference { return item_at(dataset, i); });
  }
  /// The line that the item was read from.
  Source source(std::int64_t index) const {
    return at<0, Source>(index, [](const auto& dataset, std::int64_t i) { return source_at(dataset, i); });
  }

 private:
  template <std::size_t i, class Result, class F>
  Result at(std::int64_t index, F f) const {
    const auto& dataset = *std::get<i>(datasets_);
    if constexpr (i + 1 == sizeof...(D))
      return f(dataset, index);
    else
      return index < size_of(dataset) ? f(dataset, index) : at<i + 1, Result>(index - size_of(dataset), f);
  }

  std::tuple<detail::HeldDataset<D>...> datasets_;
};

/// The items of several datasets, whose types have a common one, one dataset after another. lvalue datasets are
/// referred to and must outlive the view; rvalues are moved in.
template <Dataset... D>
  requires(sizeof...(D) > 0)
Concatenated<D...> concat(D&&... datasets) {
  return Concatenated<D...>(detail::HeldDataset<D>(std::forward<D>(datasets))...);
}

/// A dataset whose items pass through a function; see `transformed`.
template <class D, class F>
class Transformed {
 public:
  /// The items f(item).
  Transformed(detail::HeldDataset<D> dataset, F f) : dataset_(std::move(dataset)), f_(std::move(f)) {}
  /// The number of items.
  std::int64_t size() const { return size_of(*dataset_); }
  /// f of the item at an index in [0, size), which is not checked.
  decltype(auto) operator[](std::int64_t index) const {
    if constexpr (std::invocable<const F&, ItemReference<D>, Generator&>)
      return f_(item_at(*dataset_, index), default_generator());
    else
      return f_(item_at(*dataset_, index));
  }
  /// The line that the item was read from.
  Source source(std::int64_t index) const { return source_at(*dataset_, index); }

 private:
  detail::HeldDataset<D> dataset_;
  F f_;
};

/// A dataset whose items are f(item), or f(item, generator), computed each time an item is asked for. Within a Loader
/// the random numbers of item i in epoch e are those of a generator for (seed, e, i), both the generator that f is
/// given and the thread's `default_generator()`, so that results do not depend on the number of workers, which call f
/// concurrently; outside of a Loader it is the thread's own. An lvalue dataset is referred to and must outlive the view; an
/// rvalue is moved in.
///
///     auto noisy = data::transformed(images, [](const Tensor& x, Generator& generator) {
///       return x + 0.1 * randn_like(x, {.generator = &generator});
///     });
template <Dataset D, class F>
  requires(std::invocable<const F&, ItemReference<D>> || std::invocable<const F&, ItemReference<D>, Generator&>)
Transformed<D, F> transformed(D&& dataset, F f) {
  return {detail::HeldDataset<D>(std::forward<D>(dataset)), std::move(f)};
}

}  // namespace reel::data
