#pragma once

#include "../../device/formula_loop.h"
#include "../../device/row_choice.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The formulas of comparison_logic.cu and comparison_order.cu; comparison.cu has all others.
using Logic = Formulas<formulas::LogicalAnd, formulas::LogicalOr, formulas::LogicalXor>;
using Order = Formulas<formulas::Less, formulas::LessEqual, formulas::Reversed<formulas::Less>,
                       formulas::Reversed<formulas::LessEqual>>;

void fill_logic(KernelTable& table);
void fill_order(KernelTable& table);

template <class F>
struct BinaryComparison {
  template <class Row>
  static constexpr KernelTable::BinaryKernel kernel = row_kernel<Row>;
};
// No instances of their own: the operands are exchanged instead.
template <class F>
struct BinaryComparison<formulas::Reversed<F>> {
  template <class Row>
  static void kernel(const View& out, const View& a, const View& b) {
    row_kernel<ElementwiseRow<F, Row::operands, Row::cost>>(out, b, a);
  }
};

template <class... Rows>
void fill_binary_comparisons(KernelTable& table, KernelList<Rows...>) {
  ((table.binary[binary_place<typename Rows::Formula>] =
        BinaryComparison<typename Rows::Formula>::template kernel<Rows>),
   ...);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
