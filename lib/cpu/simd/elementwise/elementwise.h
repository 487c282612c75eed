#pragma once

#include "../../../kernels/kernel_table.h"

// The functions that fill_elementwise calls, one for each file. This header is compiled once per instruction set.

namespace reel::detail {
inline namespace REEL_TARGET {

void fill_unary(KernelTable& table);
void fill_exponential(KernelTable& table);
void fill_trigonometric(KernelTable& table);
void fill_special(KernelTable& table);
void fill_arithmetic(KernelTable& table);
void fill_comparison(KernelTable& table);

}  // namespace REEL_TARGET
}  // namespace reel::detail
