#pragma once

#include "../../../kernels/activation.h"

// Functions that fill the tables of elementwise kernels, besides fill_elementwise, and a copy for other kernels. This header is compiled once per instruction
// set.

namespace reel::detail::inline REEL_TARGET {

/// Fills the slots of one part of the lists.
template <int part>
void fill_elementwise_part(KernelTable& table, ActivationKernels& activation);
void fill_masked_softmax(ActivationKernels& table);
/// Copies elements between tensors of one shape, converted if their dtypes differ.
void copy_elements(const View& out, const View& x);

}  // namespace reel::detail::inline REEL_TARGET
