#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "memory_order.h"
#include "target.h"

namespace reel::detail::inline REEL_TARGET {

/// Iterates over the index space of `operands[0]` with every other operand broadcast to it: axes that are contiguous in
/// all operands are merged, axes of size one dropped. Axis 0 is the innermost.
template <int operand_count>
struct Iteration {
  int rank = 0;
  std::int64_t dims[8];
  std::int64_t strides[operand_count][8];

  explicit Iteration(const View* const (&operands)[operand_count]) : Iteration(operands, nullptr) {}
  /// Iterates in the order that the elements of operand 0 have in memory: axis 0 is the one with its smallest stride.
  static Iteration in_memory(const View* const (&operands)[operand_count]) {
    const View& result = *operands[0];
    if (result.contiguous) return Iteration(operands);
    MemoryOrder order(result.dims, result.strides, result.rank);
    return Iteration(operands, &order);
  }

 private:
  Iteration(const View* const (&operands)[operand_count], const MemoryOrder* order) {
    const View& result = *operands[0];
    for (int place = order ? order->rank : result.rank; place-- > 0;) {
      int axis = order ? order->axes[place] : place;
      std::int64_t dim = result.dims[axis];
      if (dim == 1) continue;
      std::int64_t step[operand_count];
      for (int k = 0; k < operand_count; ++k) {
        int own = axis - (result.rank - operands[k]->rank);  // aligned at the right
        step[k] = own < 0 || (operands[k]->dims[own] == 1 && dim != 1) ? 0 : operands[k]->strides[own];
      }
      if (rank > 0 && merges(step)) {
        dims[rank - 1] *= dim;
        continue;
      }
      dims[rank] = dim;
      for (int k = 0; k < operand_count; ++k) strides[k][rank] = step[k];
      ++rank;
    }
    if (rank == 0) {
      dims[0] = 1;
      for (int k = 0; k < operand_count; ++k) strides[k][0] = 1;
      rank = 1;
    }
  }

 public:
  /// Calls `row(offsets)` for each innermost row, with each operand's offset in elements.
  template <class Row>
  void for_each_row(Row row) const {
    std::int64_t offsets[operand_count] = {};
    std::int64_t index[8] = {};
    for (int axis = 0; axis < rank; ++axis)
      if (dims[axis] == 0) return;
    while (true) {
      row(offsets);
      int axis = 1;
      for (; axis < rank; ++axis) {
        for (int k = 0; k < operand_count; ++k) offsets[k] += strides[k][axis];
        if (++index[axis] < dims[axis]) break;
        for (int k = 0; k < operand_count; ++k) offsets[k] -= strides[k][axis] * dims[axis];
        index[axis] = 0;
      }
      if (axis == rank) return;
    }
  }

  /// Iterates over elements [begin, end) in row-major order, with rows cut at both ends: calls `row(offsets, count)`.
  template <class Row>
  void for_each_part(std::int64_t begin, std::int64_t end, Row row) const {
    if (begin >= end) return;
    std::int64_t offsets[operand_count] = {};
    std::int64_t index[8] = {};
    for (std::int64_t axis = 0, rest = begin; axis < rank; rest /= dims[axis++]) {
      index[axis] = rest % dims[axis];
      for (int k = 0; k < operand_count; ++k) offsets[k] += strides[k][axis] * index[axis];
    }
    while (true) {
      std::int64_t count = dims[0] - index[0] < end - begin ? dims[0] - index[0] : end - begin;
      row(offsets, count);
      begin += count;
      if (begin == end) return;
      index[0] += count - 1;
      for (int k = 0; k < operand_count; ++k) offsets[k] += strides[k][0] * (count - 1);
      for (int axis = 0; axis < rank; ++axis) {
        for (int k = 0; k < operand_count; ++k) offsets[k] += strides[k][axis];
        if (++index[axis] < dims[axis]) break;
        for (int k = 0; k < operand_count; ++k) offsets[k] -= strides[k][axis] * dims[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  bool merges(const std::int64_t (&step)[operand_count]) const {
    for (int k = 0; k < operand_count; ++k)
      if (step[k] != strides[k][rank - 1] * dims[rank - 1]) return false;
    return true;
  }
};

}  // namespace reel::detail::inline REEL_TARGET
