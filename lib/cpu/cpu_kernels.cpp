#include "cpu_kernels.h"

namespace reel::detail {
namespace {

const InstructionSet& best_instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  if (avx512) return instruction_set_avx512();
  if (avx2) return instruction_set_avx2();
#endif
  return instruction_set_baseline();
}

}  // namespace

void fill_cpu_kernels(KernelTable& table) {
  const InstructionSet& set = best_instruction_set();
  set.fill_elementwise(table);
  set.fill_reduce(table);
  set.fill_softmax(table);
  set.fill_random(table);
  fill_copy(table);
  fill_index(table);
  fill_matmul(table);
  fill_sort(table);
}

}  // namespace reel::detail
