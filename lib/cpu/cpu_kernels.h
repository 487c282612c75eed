#pragma once

#include "../kernels/kernel_table.h"
#include "processor.h"

namespace reel::detail {

/// Fills every slot of the CPU's table with the kernels of `instruction_set()`. Throws: DeviceError as
/// `instruction_set`.
void fill_cpu_kernels(KernelTable& table);

/// True if this build contains kernels for the set.
bool has_kernels(InstructionSet set);

void fill_create(KernelTable& table);
void fill_embedding(KernelTable& table);
void fill_index(KernelTable& table);
void fill_linear_algebra(KernelTable& table);
void fill_median(KernelTable& table);
void fill_nonzero(KernelTable& table);
void fill_polygamma(KernelTable& table);
void fill_resample(KernelTable& table);
void fill_sampling(KernelTable& table);
void fill_scan(KernelTable& table);
void fill_sort(KernelTable& table);

// Compiled once per instruction set. Weak, since a build may leave sets out (-Dkernels): these functions are then null.
[[gnu::weak]] void fill_kernels_baseline(KernelTable& table);
[[gnu::weak]] void fill_kernels_avx2(KernelTable& table);
[[gnu::weak]] void fill_kernels_avx512(KernelTable& table);

}  // namespace reel::detail
