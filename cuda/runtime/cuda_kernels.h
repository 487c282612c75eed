#pragma once

#include "../../lib/core/target.h"
#include "../../lib/kernels/kernel_table.h"

namespace reel::detail {
struct OptimiserKernels;
}

namespace reel::detail::inline REEL_TARGET {

/// Fills every slot of the device's table.
void fill_device_kernels(KernelTable& table);

// Each function fills the slots of its family.
void fill_anomaly(KernelTable& table);
void fill_argmax(KernelTable& table);
void fill_attention(KernelTable& table);
void fill_concat(KernelTable& table);
void fill_convolution(KernelTable& table);
void fill_copy(KernelTable& table);
void fill_create(KernelTable& table);
void fill_elementwise(KernelTable& table);
void fill_embedding(KernelTable& table);
void fill_index(KernelTable& table);
void fill_linear_algebra(KernelTable& table);
void fill_loss(KernelTable& table);
void fill_statistics(KernelTable& table);
void fill_matmul(KernelTable& table);
void fill_median(KernelTable& table);
void fill_nonzero(KernelTable& table);
void fill_normalise(KernelTable& table);
void fill_polygamma(KernelTable& table);
void fill_pooling(KernelTable& table);
void fill_random(KernelTable& table);
void fill_randperm(KernelTable& table);
void fill_recurrent(KernelTable& table);
void fill_reduce(KernelTable& table);
void fill_resample(KernelTable& table);
void fill_sampling(KernelTable& table);
void fill_scan(KernelTable& table);
void fill_softmax(KernelTable& table);
void fill_sort(KernelTable& table);
void fill_sparse(KernelTable& table);
void fill_ternary(KernelTable& table);

void fill_device_optimisers(OptimiserKernels& kernels);

}  // namespace reel::detail::inline REEL_TARGET
