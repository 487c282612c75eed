#pragma once

#include "../core/kernel_table.h"

namespace reel::detail {

/// Fills every slot of the CPU's table with the kernels for the instruction set at hand.
void fill_cpu_kernels(KernelTable& table);

void fill_copy(KernelTable& table);
void fill_index(KernelTable& table);
void fill_matmul(KernelTable& table);
void fill_sort(KernelTable& table);

// Built once per instruction set.
struct InstructionSet {
  void (*fill_elementwise)(KernelTable& table);
  void (*fill_reduce)(KernelTable& table);
  void (*fill_softmax)(KernelTable& table);
  void (*fill_random)(KernelTable& table);
};
const InstructionSet& instruction_set_baseline();
const InstructionSet& instruction_set_avx2();
const InstructionSet& instruction_set_avx512();

}  // namespace reel::detail
