#pragma once

#include "../core/kernel_table.h"

namespace reel::detail {

/// Fills every slot of the CPU's table with the kernels for the instruction set at hand.
void fill_cpu_kernels(KernelTable& table);

/// "AVX-512": what the kernels are built for that run here.
const char* instruction_set_name();

void fill_create(KernelTable& table);
void fill_embedding(KernelTable& table);
void fill_index(KernelTable& table);
void fill_linear_algebra(KernelTable& table);
void fill_median(KernelTable& table);
void fill_polygamma(KernelTable& table);
void fill_resample(KernelTable& table);
void fill_sample(KernelTable& table);
void fill_scan(KernelTable& table);
void fill_sort(KernelTable& table);

// What is built once per instruction set.
void fill_kernels_baseline(KernelTable& table);
void fill_kernels_avx2(KernelTable& table);
void fill_kernels_avx512(KernelTable& table);

}  // namespace reel::detail
