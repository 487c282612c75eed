#pragma once

#include <type_traits>

#include "../../lib/kernels/formulas/row.h"

// Lists of kernels are compiled in several files, since nvcc uses one processor for each.

namespace reel::detail {
inline namespace REEL_TARGET {

/// Some formulas of a list.
template <class... F>
struct Formulas {
  template <class Row>
  static constexpr bool has = (std::is_same_v<typename Row::Formula, F> || ...);
};

/// The formulas of several of these.
template <class... Some>
struct AnyOf {
  template <class Row>
  static constexpr bool has = (Some::template has<Row> || ...);
};

/// The rows of a list whose formulas are chosen, and all others.
template <class List, class Chosen>
struct RowChoice;
template <class... Rows, class Chosen>
struct RowChoice<KernelList<Rows...>, Chosen> {
  using With = decltype((KernelList<>() + ... +
                         std::conditional_t<Chosen::template has<Rows>, KernelList<Rows>, KernelList<>>()));
  using Without = decltype((KernelList<>() + ... +
                            std::conditional_t<Chosen::template has<Rows>, KernelList<>, KernelList<Rows>>()));
};

template <class List, class Chosen>
using RowsOf = typename RowChoice<List, Chosen>::With;
template <class List, class Chosen>
using RowsWithout = typename RowChoice<List, Chosen>::Without;

}  // namespace REEL_TARGET
}  // namespace reel::detail
