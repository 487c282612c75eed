#pragma once

#include "../kernels/kernel_table.h"
#include "processor.h"

namespace reel::detail {

struct OptimiserKernels;

/// Fills every slot of the CPU's tables with the kernels of `instruction_set()`. Throws: DeviceError as
/// `instruction_set`.
void fill_cpu_kernels(KernelTable& table, OptimiserKernels& optimisers);

/// True if this build contains kernels for the set.
bool has_kernels(InstructionSet set);

void fill_create(KernelTable& table);
void fill_embedding(KernelTable& table);
void fill_index(KernelTable& table);
void fill_linear_algebra(KernelTable& table);
void fill_nonzero(KernelTable& table);
void fill_polygamma(KernelTable& table);
void fill_resample(KernelTable& table);
void fill_sampling(KernelTable& table);

/// Fills the tables with the kernels that are compiled once per instruction set.
using FillKernels = void (*)(KernelTable& table, OptimiserKernels& optimisers);
/// The function for a set; null if this build leaves the set out (-Dkernels).
template <InstructionSet set>
FillKernels kernels_of();
template <>
FillKernels kernels_of<InstructionSet::baseline>();
template <>
FillKernels kernels_of<InstructionSet::avx2>();
template <>
FillKernels kernels_of<InstructionSet::avx512>();

}  // namespace reel::detail
