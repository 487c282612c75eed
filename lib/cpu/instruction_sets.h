#pragma once

#include <cstdint>

// Also compiled by the build files, to find the build machine's set: it uses nothing else of the library.

namespace reel::detail {

/// The instruction sets that the CPU's kernels are compiled for; each contains those before it.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };

/// The set's name in settings: "avx512".
constexpr const char* setting_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx2: return "avx2";
    default: return "baseline";
  }
}

/// The largest set that the processor supports.
inline InstructionSet processor_instruction_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  if (avx512) return InstructionSet::avx512;
  if (avx2) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

}  // namespace reel::detail
