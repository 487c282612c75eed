#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "../../../core/threads/parallel.h"
#include "../vector/vector.h"
#include "tile.h"

// Scans of slices: a slice holds the elements of the scanned axis and of the axes inside it. This header is compiled once per
// instruction set.

namespace reel::detail::inline REEL_TARGET {

/// Divides the slices of a shape with elements into tiles: some slices or, of large ones, some columns and positions of one.
class ScanPlan {
 public:
  static constexpr std::int64_t most_elements = 2048, most_columns = 128;

  /// Positions `first` to `first + count` of columns `column` to `column + width` of adjacent slices; all columns of several.
  struct Tile {
    std::int64_t slice, slices, column, width, first, count;
    std::int64_t size() const { return slices * count * width; }
  };

  ScanPlan(const View& x, int axis) : length_(x.dims[axis]) {
    for (int i = axis + 1; i < x.rank; ++i) inner_ *= x.dims[i];
    slices_ = x.numel / (length_ * inner_);
    groups_ = (inner_ + most_columns - 1) / most_columns;
    width_ = groups_ == 1 ? inner_ : ((inner_ + groups_ - 1) / groups_ + 15) / 16 * 16;
    groups_ = (inner_ + width_ - 1) / width_;
    // Where the elements of a row are farther apart than the rows are, each cache line has elements of several rows.
    bool is_crosswise = has_rows() && axis > 0 && std::abs(x.strides[axis]) > std::abs(x.strides[axis - 1]);
    if (groups_ == 1) together_ = std::max<std::int64_t>(most_elements / (length_ * inner_), is_crosswise ? 16 : 1);
    together_ = std::min(together_, slices_);
  }
  /// True if slices are rows of adjacent elements.
  bool has_rows() const { return inner_ == 1; }

  /// Calls f(tile) for all tiles, where f is what make(columns) returns: tiles of the same columns share one f, in order.
  template <class Make>
  void for_each_tile(Make make) const {
    std::int64_t tasks = (slices_ + together_ - 1) / together_ * groups_, elements = together_ * length_ * width_;
    std::int64_t height = most_elements / (together_ * width_);
    // Rows are divided where elements that are joined by fours are.
    if (has_rows() && height < length_) height = height / 4 * 4;
    parallel_for(tasks, (parallel_grain + elements - 1) / elements, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t task = begin; task < end; ++task) {
        std::int64_t slice = task / groups_ * together_, column = task % groups_ * width_;
        std::int64_t slices = std::min(together_, slices_ - slice), width = std::min(width_, inner_ - column);
        auto take = make(slices * width);
        for (std::int64_t first = 0; first < length_; first += height)
          take(Tile{slice, slices, column, width, first, std::min(height, length_ - first)});
      }
    });
  }
  /// The place of a tile's rows in a contiguous tensor; −1 if it has no rows, or they are apart.
  std::int64_t place_of_rows(const Tile& at) const {
    return has_rows() && (at.slices == 1 || at.count == length_) ? at.slice * length_ + at.first : -1;
  }

 private:
  std::int64_t length_, inner_ = 1, slices_, width_, groups_, together_ = 1;
};

/// Tiles are padded, so that vectors can be read and written up to their ends.
template <class E>
using TileSpace = E[ScanPlan::most_elements + Vector<E>::lanes];

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

  /// Where the elements of a tile are: in memory, or in `space`.
  E* place(const ScanPlan& plan, const ScanPlan::Tile& at, TileSpace<E>& space) const {
    std::int64_t place = plan.place_of_rows(at);
    return packed_ && place >= 0 ? packed_ + place : space;
  }
  const E* read(const ScanPlan& plan, const ScanPlan::Tile& at, TileSpace<E>& space) const {
    E* from = place(plan, at, space);
    if (from == space) copy(at, space);
    return from;
  }
  void copy(const ScanPlan::Tile& at, TileSpace<E>& space) const {
    with_axes(at, [&](auto... axes) { access_.gather(space, axes...); });
    std::fill_n(space + at.size(), Vector<E>::lanes, E(0));
  }
  void write(const ScanPlan::Tile& at, const E* from, const TileSpace<E>& space) const {
    if (from == space) with_axes(at, [&](auto... axes) { access_.scatter(space, axes...); });
  }

 private:
  template <class F>
  void with_axes(const ScanPlan::Tile& at, F f) const {
    if (at.slices > 1)
      f(start_, outer_, at.slice, at.slices, whole_, at.first * at.width, at.count * at.width);
    else
      f(start_ + outer_.offset(at.slice), along_, at.first, at.count, inner_, at.column, at.width);
  }

  Access<E> access_;
  JoinedAxes along_, inner_, whole_, outer_;
  std::int64_t start_ = 0;
  E* packed_ = nullptr;
};

}  // namespace reel::detail::inline REEL_TARGET
