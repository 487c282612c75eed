#pragma once

#include "../../device/formula_loop.h"
#include "../../device/row_choice.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The formulas of unary_rounding.cu; unary.cu has all others.
using Rounding = Formulas<formulas::Floor, formulas::Ceil, formulas::Round, formulas::Trunc>;

void fill_rounding(KernelTable& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
