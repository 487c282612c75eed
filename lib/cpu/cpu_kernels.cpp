#include "cpu_kernels.h"

namespace reel::detail {
namespace {

struct InstructionSet {
  const char* name;
  void (*fill)(KernelTable& table);
};

// The best one at hand.
InstructionSet instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  if (avx512) return {"AVX-512", fill_kernels_avx512};
  if (avx2) return {"AVX2", fill_kernels_avx2};
#endif
  return {"baseline", fill_kernels_baseline};
}

}  // namespace

const char* instruction_set_name() { return instruction_set().name; }

void fill_cpu_kernels(KernelTable& table) {
  instruction_set().fill(table);
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
