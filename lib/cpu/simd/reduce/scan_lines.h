#pragma once

#include <algorithm>
#include <cstdint>

#include "../../../core/threads/parallel.h"
#include "tile.h"

// The elements of tensors as lines along one axis, which scans read and write by way of tiles. This header is compiled once
// per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// The lines of one tensor along an axis, in row-major order, from their ends if `backwards`.
struct Lines {
  JoinedAxes along, across;
  std::int64_t start = 0;

  Lines(const View& view, int axis, bool backwards) {
    std::int64_t step = view.strides[axis];
    start = backwards ? (view.dims[axis] - 1) * step : 0;
    along.add(view.dims[axis], backwards ? -step : step);
    for (int i = view.rank; i-- > 0;)
      if (i != axis && view.dims[i] != 1) across.add(view.dims[i], view.strides[i]);
  }
};

/// Divides the lines of a shape with elements into groups, and these into tiles. A tile of long lines that are adjacent in
/// a contiguous tensor has a line in each row, another has a position in each row: which one depends on the shape only.
class ScanPlan {
 public:
  /// The most elements of a tile, and lines of a group.
  static constexpr std::int64_t most_elements = 2048, most_lines = 128;
  /// From this length on lines are rows.
  static constexpr std::int64_t long_line = 16;

  /// A part of the lines of a group.
  struct Tile {
    std::int64_t line, lines, first, count;
  };

  ScanPlan(const View& out, int axis) : length_(out.dims[axis]), lines_(out.numel / length_) {
    std::int64_t inner = 1;
    for (int i = axis + 1; i < out.rank; ++i) inner *= out.dims[i];
    has_rows_ = inner == 1 && length_ >= long_line;
    group_ =
        has_rows_ ? std::clamp<std::int64_t>(most_elements / length_, 1, most_lines) : std::min(lines_, most_lines);
  }
  /// True if the rows of a tile are lines.
  bool has_rows() const { return has_rows_; }
  std::int64_t length() const { return length_; }

  /// Calls f(line, lines) for all groups, on several threads.
  template <class F>
  void for_each_group(F f) const {
    std::int64_t grain = (parallel_grain + group_ * length_ - 1) / (group_ * length_);
    parallel_for((lines_ + group_ - 1) / group_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t line = begin * group_; line < std::min(end * group_, lines_); line += group_)
        f(line, std::min(group_, lines_ - line));
    });
  }
  /// Calls f(tile) for the tiles of a group, in order.
  template <class F>
  void for_each_tile(std::int64_t line, std::int64_t lines, F f) const {
    std::int64_t height = most_elements / lines;
    for (std::int64_t first = 0; first < length_; first += height)
      f(Tile{line, lines, first, std::min(height, length_ - first)});
  }

  template <class Wide>
  void read(const Reader<Wide>& reader, const Lines& lines, const Tile& at, Wide* tile) const {
    if (has_rows_)
      reader.gather(tile, lines.start, lines.across, at.line, at.lines, lines.along, at.first, at.count);
    else
      reader.gather(tile, lines.start, lines.along, at.first, at.count, lines.across, at.line, at.lines);
  }
  template <class Wide>
  void write(const Writer<Wide>& writer, const Lines& lines, const Tile& at, const Wide* tile) const {
    if (has_rows_)
      writer.scatter(tile, lines.start, lines.across, at.line, at.lines, lines.along, at.first, at.count);
    else
      writer.scatter(tile, lines.start, lines.along, at.first, at.count, lines.across, at.line, at.lines);
  }

 private:
  std::int64_t length_, lines_, group_;
  bool has_rows_;
};

}  // namespace reel::detail::inline REEL_TARGET
