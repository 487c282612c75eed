#include "cpu_kernels.h"

namespace reel::detail {
namespace {

// With the kernels for the instruction set at hand.
void fill_best(KernelTable& table) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  if (avx512) return fill_kernels_avx512(table);
  if (avx2) return fill_kernels_avx2(table);
#endif
  fill_kernels_baseline(table);
}

}  // namespace

void fill_cpu_kernels(KernelTable& table) {
  fill_best(table);
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
