#pragma once

#include <algorithm>
#include <cstdint>

#include "../../../core/threads/parallel.h"
#include "tile.h"

// Scans of slices: a slice holds the elements of the scanned axis and of the axes inside it. This header is compiled once per
// instruction set.

namespace reel::detail::inline REEL_TARGET {

/// Divides the slices of a shape with elements into tiles of some whole slices or, if these are large, of some columns and
/// positions of one. It depends on the shape only.
class ScanPlan {
 public:
  static constexpr std::int64_t most_elements = 2048, most_columns = 128;

  /// Positions `first` to `first + count` of columns `column` to `column + width` of adjacent slices, all of them if there are
  /// several.
  struct Tile {
    std::int64_t slice, slices, column, width, first, count;
    std::int64_t size() const { return slices * count * width; }
  };

  ScanPlan(const View& out, int axis) : length_(out.dims[axis]) {
    for (int i = axis + 1; i < out.rank; ++i) inner_ *= out.dims[i];
    slices_ = out.numel / (length_ * inner_);
    groups_ = (inner_ + most_columns - 1) / most_columns;
    width_ = groups_ == 1 ? inner_ : ((inner_ + groups_ - 1) / groups_ + 15) / 16 * 16;
    groups_ = (inner_ + width_ - 1) / width_;
    if (groups_ == 1) together_ = std::max<std::int64_t>(most_elements / (length_ * inner_), 1);
  }
  /// True if slices are lines of adjacent elements.
  bool has_rows() const { return inner_ == 1; }

  /// Calls make()(tile) for all tiles: the same function for those of a slice, in order.
  template <class Make>
  void for_each_tile(Make make) const {
    std::int64_t tasks = (slices_ + together_ - 1) / together_ * groups_, height = most_elements / width_;
    std::int64_t elements = together_ * length_ * width_;
    parallel_for(tasks, (parallel_grain + elements - 1) / elements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        std::int64_t slice = task / groups_ * together_, column = task % groups_ * width_;
        std::int64_t slices = std::min(together_, slices_ - slice), width = std::min(width_, inner_ - column);
        auto take = make();
        for (std::int64_t first = 0; first < length_; first += height)
          take(Tile{slice, slices, column, width, first, std::min(height, length_ - first)});
      }
    });
  }

  /// Where a tile begins in a contiguous tensor.
  std::int64_t place_of(const Tile& at) const { return (at.slice * length_ + at.first) * inner_ + at.column; }

 private:
  std::int64_t length_, inner_ = 1, slices_, width_, groups_, together_ = 1;
};

/// An operand or a result of a scan, from the ends of its slices if `backwards`. `Access` is Reader or Writer.
template <class E, template <class> class Access>
class ScanOperand {
 public:
  ScanOperand(const View& view, int axis, bool backwards) : access_(view) {
    std::int64_t step = view.strides[axis];
    if (backwards) start_ = (view.dims[axis] - 1) * step;
    if (view.contiguous && !backwards && view.dtype == dtype_of<E>()) packed_ = view.as<E>();
    for (int i = view.rank; i-- > 0;)
      if (view.dims[i] != 1 && i != axis) (i > axis ? inner_ : outer_).add(view.dims[i], view.strides[i]);
    along_.add(view.dims[axis], backwards ? -step : step);
    whole_.add(inner_);
    whole_.add(along_);
  }

  /// The elements of a tile of rows in memory; null if they are not there without gaps.
  E* in_place(const ScanPlan& plan, const ScanPlan::Tile& at) const {
    return packed_ ? packed_ + plan.place_of(at) : nullptr;
  }
  void read(const ScanPlan::Tile& at, E* tile) const {
    with_axes(at, [&](auto... axes) { access_.gather(tile, axes...); });
  }
  void write(const ScanPlan::Tile& at, const E* tile) const {
    with_axes(at, [&](auto... axes) { access_.scatter(tile, axes...); });
  }

 private:
  template <class F>
  void with_axes(const ScanPlan::Tile& at, F f) const {
    if (at.slices > 1)
      f(start_, outer_, at.slice, at.slices, whole_, std::int64_t{0}, at.count * at.width);
    else
      f(start_ + outer_.offset(at.slice), along_, at.first, at.count, inner_, at.column, at.width);
  }

  Access<E> access_;
  JoinedAxes along_, inner_, whole_, outer_;
  std::int64_t start_ = 0;
  E* packed_ = nullptr;
};

}  // namespace reel::detail::inline REEL_TARGET
