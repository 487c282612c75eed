#pragma once

#include "../../device/formula_loop.h"
#include "../../device/row_choice.h"

namespace reel::detail {
inline namespace REEL_TARGET {

// The formulas of exponential_hyperbolic.cu; exponential.cu has all others.
using Hyperbolic =
    Formulas<formulas::Sinh, formulas::Cosh, formulas::Tanh, formulas::Asinh, formulas::Acosh, formulas::Atanh>;

void fill_hyperbolic(KernelTable& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
