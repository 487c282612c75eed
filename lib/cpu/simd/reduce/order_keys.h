#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "../../../core/halves.h"
#include "../../../core/iteration.h"
#include "../../../core/threads/parallel.h"

// How elements are ordered: see KernelTable::sort.

namespace reel::detail::inline REEL_TARGET {

template <class T>
using Key = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// An unsigned integer with the order of x; NaN is the largest, and the two zeros are equal.
template <class T>
Key<T> key_of(T x) {
  if constexpr (is_half_v<T>) {
    return key_of(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    using Bits = Key<T>;
    constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
    auto bits = std::bit_cast<Bits>(x + T(0));  // the sum of -0 and 0 is 0
    Bits key = bits ^ (bits & sign ? ~Bits(0) : sign);
    return x == x ? key : ~Bits(0);
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<std::uint64_t>(x) ^ std::uint64_t(1) << 63;
  } else {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(x)) ^ std::uint32_t(1) << 31;
  }
}

/// Iterates over the rows of tensors along an axis; their sizes on all other axes are equal. A number is a row.
template <int operand_count>
Iteration<operand_count> rows_along(int axis, const View (&operands)[operand_count]) {
  std::int64_t dims[8];
  View rows[operand_count];
  const View* each[operand_count];
  for (int k = 0; k < operand_count; ++k) {
    rows[k] = operands[k];
    rows[k].dims = dims;
    each[k] = &rows[k];
  }
  std::copy_n(operands[0].dims, operands[0].rank, dims);
  if (axis >= 0) dims[axis] = 1;
  return Iteration<operand_count>(each);
}

/// A row of elements, whose keys order it.
template <class T>
struct Row {
  const T* first;
  std::int64_t size, step;
  Key<T> flip;  // all ones for descending order

  Key<T> key(std::int64_t place) const { return key_of(first[place * step]) ^ flip; }
  template <class E>
  void load(E* entries) const {
    parallel_for(size, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) entries[place] = E(key(place), place);
    });
  }
};

}  // namespace reel::detail::inline REEL_TARGET
