#pragma once

namespace reel {

/// Sets whether a row's results on the CPU are equal to the bit whatever rows are computed beside it also where that costs
/// time: in products by a matrix whose columns are contiguous, such as the transpose of a row-major weight, and in products
/// of bf16, which then use no bf16 instructions. Everything else that treats rows alike has this property without it.
/// Default off. The setting is the process's; change it while no other thread computes.
void set_batch_invariant(bool invariant);

/// True if results are equal to the bit in any batch; false at first. See set_batch_invariant.
bool batch_invariant();

}  // namespace reel
