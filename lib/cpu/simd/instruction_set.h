#pragma once

#include "../../kernels/kernel_table.h"

// The files that include this one are compiled once per instruction set. Their definitions are in a namespace per set,
// so that no processor runs code that was compiled for another.

namespace reel::detail::inline REEL_TARGET {

void fill_anomaly(KernelTable& table);
void fill_attention(KernelTable& table);
void fill_copy(KernelTable& table);
void fill_element_summary(KernelTable& table);
void fill_elementwise(KernelTable& table);
void fill_matmul(KernelTable& table);
void fill_reduce(KernelTable& table);
void fill_argmax(KernelTable& table);
void fill_loss(KernelTable& table);
void fill_median(KernelTable& table);
void fill_statistics(KernelTable& table);
void fill_normalise(KernelTable& table);
void fill_softmax(KernelTable& table);
void fill_sort(KernelTable& table);
void fill_pooling(KernelTable& table);
void fill_random(KernelTable& table);
void fill_convolution(KernelTable& table);
void fill_recurrent(KernelTable& table);
void fill_scan(KernelTable& table);
void fill_sparse(KernelTable& table);
void fill_ternary(KernelTable& table);

}  // namespace reel::detail::inline REEL_TARGET
