#include "cpu_kernels.h"

#include "processor.h"

namespace reel::detail {
namespace {

void fill_for([[maybe_unused]] InstructionSet set, KernelTable& table) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return fill_kernels_avx512(table);
  if (set == InstructionSet::avx2) return fill_kernels_avx2(table);
#endif
  fill_kernels_baseline(table);
}

}  // namespace

void fill_cpu_kernels(KernelTable& table) {
  fill_for(instruction_set(), table);
  fill_create(table);
  fill_embedding(table);
  fill_index(table);
  fill_linear_algebra(table);
  fill_median(table);
  fill_polygamma(table);
  fill_resample(table);
  fill_sample(table);
  fill_scan(table);
  fill_sort(table);
}

}  // namespace reel::detail
