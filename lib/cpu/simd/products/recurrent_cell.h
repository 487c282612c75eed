#pragma once

#include <cstdint>

#include "../../../kernels/formulas/recurrent.h"
#include "../vector/vector_exponential.h"

// The formulas of recurrent cells, a vector at a time. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

using formulas::CellGradientRow, formulas::CellRow, formulas::TreeGradientRow, formulas::TreeRow;

/// A vector of units of a row, from unit j on; the last may be partial.
template <class T, bool whole>
struct Lanes {
  using V = Vector<T>;
  std::int64_t j, count;

  HWY_INLINE V load(const T* from) const {
    if constexpr (whole) return V::load(from + j);
    return V::load(from + j, count);
  }
  HWY_INLINE void store(T* to, V value) const {
    if constexpr (whole)
      value.store(to + j);
    else
      value.store(to + j, count);
  }
};

template <class T, class F>
HWY_INLINE void for_each_lanes(std::int64_t units, F f) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t j = 0;
  for (; j + lanes <= units; j += lanes) f(Lanes<T, true>{j, lanes});
  if (j < units) f(Lanes<T, false>{j, units - j});
}

template <RecurrentCell cell, class T>
[[gnu::flatten]] void run_forward(const CellRow<T>& row) {
  for_each_lanes<T>(row.units, [&](auto at) { formulas::Cell<cell>::forward(row, at); });
}

template <RecurrentCell cell, class T>
[[gnu::flatten]] void run_backward(const CellGradientRow<T>& row) {
  for_each_lanes<T>(row.units, [&](auto at) { formulas::Cell<cell>::backward(row, at); });
}

template <class T>
[[gnu::flatten]] void run_forward(const TreeRow<T>& row) {
  for_each_lanes<T>(row.size, [&](auto at) { row.forward(at); });
}

template <class T>
[[gnu::flatten]] void run_backward(const TreeGradientRow<T>& row) {
  for_each_lanes<T>(row.size, [&](auto at) { row.backward(at); });
}

}  // namespace reel::detail::inline REEL_TARGET
