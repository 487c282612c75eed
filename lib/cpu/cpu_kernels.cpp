#include "cpu_kernels.h"

namespace reel::detail {
namespace {

FillKernels fill_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512: return kernels_of<InstructionSet::avx512>();
    case InstructionSet::avx2: return kernels_of<InstructionSet::avx2>();
    default: return kernels_of<InstructionSet::baseline>();
  }
}

}  // namespace

bool has_kernels(InstructionSet set) { return fill_of(set) != nullptr; }

void fill_cpu_kernels(KernelTable& table, OptimiserKernels& optimisers) {
  fill_of(instruction_set())(table, optimisers);
  fill_create(table);
  fill_embedding(table);
  fill_index(table);
  fill_linear_algebra(table);
  fill_nonzero(table);
  fill_polygamma(table);
  fill_resample(table);
  fill_sampling(table);
}

}  // namespace reel::detail
