#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../device/offsets.h"
#include "../../device/split.h"

// Pairs of elements of a listed tensor and of a tensor that is indexed along an axis:
//
//   listed[…, j, …]  and  indexed[…, index[j], …]        rows: one index for all elements off the axis
//   listed[…, j, …]  and  indexed[…, index[…, j, …], …]  elements: each has an index of its own
//
// j is a position in the list, which has several axes if the indices of rows have; the positions off it are the
// columns.

namespace reel::detail::inline REEL_TARGET {

/// Indices, i32 or i64, with the size of the axis to which they refer.
class IndexList {
 public:
  IndexList(const View& indices, std::int64_t size)
      : data_(indices.data), wide_(indices.dtype == DType::i64), size_(size) {}
  REEL_DEVICE std::int64_t operator[](std::int64_t at) const {
    return wide_ ? static_cast<const std::int64_t*>(data_)[at] : static_cast<const std::int32_t*>(data_)[at];
  }
  /// The index in [0, size); −1 for one out of range.
  REEL_DEVICE std::int64_t place(std::int64_t at) const {
    std::int64_t index = (*this)[at];
    if (index < 0) index += size_;
    return index < size_ && index >= 0 ? index : -1;
  }
  REEL_HOST_DEVICE std::int64_t size() const { return size_; }

 private:
  const void* data_;
  bool wide_;
  std::int64_t size_;
};

/// The axes of such tensors, with their strides. For host code.
struct IndexAxes {
  struct Axis {
    std::int64_t size, listed, indexed, index;
  };
  Axis list[8], columns[8];
  int list_rank = 0, column_rank = 0;
  /// The index of the first column axis behind the list.
  int first_inner = 0;
  /// The size and stride of the indexed tensor along the axis.
  std::int64_t size, step;

  static IndexAxes of_rows(const View& listed, const View& indexed, const View& indices, int axis);
  /// If the index is constant off its axis, the pairs are treated as rows.
  static IndexAxes of_elements(const View& listed, const View& indexed, const View& index, int axis);

  /// Returns true if there is one index for all columns.
  bool are_rows() const;
  /// Merges adjacent elements of `bytes` bytes into larger units, as far as rows allow, and returns the units' size in
  /// bytes.
  std::int64_t widen(std::int64_t bytes, const void* listed, const void* indexed);
};

/// The pairs in a form for kernels.
class IndexPairs {
 public:
  explicit IndexPairs(const IndexAxes& axes);

  std::int64_t count() const { return columns_ * list_count_; }
  REEL_HOST_DEVICE std::int64_t columns() const { return columns_; }
  REEL_HOST_DEVICE std::int64_t list_count() const { return list_count_; }

  struct Pair {
    std::int64_t column, place;
  };
  /// Pair i, in row-major order of the listed tensor.
  REEL_HOST_DEVICE Pair pair(std::int64_t i) const {
    Split::Parts inner = inner_(i), list = list_split_(inner.whole);
    return {list.whole * inner_count_ + inner.rest, list.rest};
  }
  /// The pair of position i % list_count() of column i / list_count().
  REEL_HOST_DEVICE Pair pair_by_columns(std::int64_t i) const {
    Split::Parts list = list_split_(i);
    return {list.whole, list.rest};
  }
  /// The offsets at which a column starts in the listed tensor, in the indexed one, and in the index.
  struct Column {
    std::int64_t listed, indexed, index;
  };
  REEL_HOST_DEVICE Column column(std::int64_t number) const {
    std::int64_t found[3];
    column_offsets_.find(number, found);
    return {found[0], found[1], found[2]};
  }
  /// The offsets of position j of the list from there, in the listed tensor and in the index.
  struct Listed {
    std::int64_t listed, index;
  };
  REEL_HOST_DEVICE Listed listed(std::int64_t place) const {
    std::int64_t found[2];
    list_offsets_.find(place, found);
    return {found[0], found[1]};
  }
  REEL_HOST_DEVICE std::int64_t step() const { return step_; }
  /// Returns true if a search of the whole list for each position is faster than the algorithm for long lists.
  bool are_few() const {
    return list_count_ <= 32 || (list_count_ <= 256 && list_count_ * count() <= std::int64_t{1} << 24);
  }

 private:
  Offsets<3> column_offsets_;
  Offsets<2> list_offsets_;
  Split inner_, list_split_;
  std::int64_t columns_, list_count_, inner_count_, step_;
};

/// Throws: Error for a count that exceeds 32 bits.
void check_countable(std::int64_t count);

}  // namespace reel::detail::inline REEL_TARGET
