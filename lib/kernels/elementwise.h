#pragma once

#include <cstdint>
#include <type_traits>

#include "formulas/activation.h"
#include "formulas/binary.h"
#include "formulas/comparison.h"
#include "formulas/special.h"
#include "formulas/unary.h"

// The elementwise kernels of every device. An op names its kernel by the formula, whose place in these lists is the
// kernel's place in the tables. The rows are beside the formulas; each device makes its kernels from them.

namespace reel::detail {
inline namespace REEL_TARGET {
namespace kernel_lists {

using Unary = decltype(UnaryArithmetic() + Exponential() + Trigonometric() + Special() + UnaryComparison());
using Binary = decltype(BinaryArithmetic() + BinaryComparison() + Bitwise());

}  // namespace kernel_lists

template <class F, class... Rows>
constexpr int find_kernel(KernelList<Rows...>) {
  constexpr bool is_it[] = {std::is_same_v<F, typename Rows::Formula>...};
  int place = -1, rows = 0;
  for (int i = 0; i < static_cast<int>(sizeof...(Rows)); ++i)
    if (is_it[i]) place = i, ++rows;
  return rows == 1 ? place : -1;
}

/// The place of a formula's kernel in KernelTable::unary, in KernelTable::binary, and in ActivationKernels.
template <class F>
inline constexpr int unary_place = [] {
  constexpr int place = find_kernel<F>(kernel_lists::Unary());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Unary");
  return place;
}();
template <class F>
inline constexpr int binary_place = [] {
  constexpr int place = find_kernel<F>(kernel_lists::Binary());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Binary");
  return place;
}();
template <class F>
inline constexpr int activation_place = [] {
  constexpr int place = find_kernel<F>(kernel_lists::Activations());
  static_assert(place >= 0, "the formula must be in one row of kernel_lists::Activations");
  return place;
}();

}  // namespace REEL_TARGET

constexpr int unary_count = kernel_lists::Unary::count, binary_count = kernel_lists::Binary::count,
              activation_count = kernel_lists::Activations::count;

}  // namespace reel::detail
