#include "processor.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <reel/error.h>

#include "onednn.h"

namespace reel::detail {
namespace {

constexpr const char* variable = "REEL_INSTRUCTION_SET";
constexpr InstructionSet all_sets[] = {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512};

// The set's value of the variable.
const char* setting_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512: return "avx512";
    case InstructionSet::avx2: return "avx2";
    default: return "baseline";
  }
}

// "baseline, avx2"
std::string settings_up_to(InstructionSet largest) {
  std::string listed;
  for (InstructionSet set : all_sets) {
    if (set > largest) break;
    listed += (listed.empty() ? "" : ", ") + std::string(setting_of(set));
  }
  return listed;
}

InstructionSet choose_for_process() {
  const char* setting = std::getenv(variable);
  InstructionSet set = choose_instruction_set(setting, processor_instruction_set());
  // Without a wish oneDNN keeps what it knows beyond the kernels' sets, such as AMX.
  if (setting && *setting && !onednn::limit_to(set))
    throw DeviceError(
        fmt::format("{} is '{}', which oneDNN cannot be limited to any more: this program used oneDNN before "
                    "reel made its first tensor; make one earlier",
                    variable, setting),
        {});
  return set;
}

}  // namespace

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512: return "AVX-512";
    case InstructionSet::avx2: return "AVX2";
    default: return "baseline";
  }
}

InstructionSet processor_instruction_set() {
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

InstructionSet choose_instruction_set(const char* setting, InstructionSet largest) {
  if (!setting || !*setting) return largest;
  for (InstructionSet set : all_sets) {
    if (std::string_view(setting) != setting_of(set)) continue;
    if (set <= largest) return set;
    throw DeviceError(
        fmt::format("{} is '{}', which this processor lacks; it has {}", variable, setting, settings_up_to(largest)),
        {});
  }
  throw DeviceError(fmt::format("{} is '{}', but must be one of {}; this processor has {}", variable, setting,
                                settings_up_to(InstructionSet::avx512), settings_up_to(largest)),
                    {});
}

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose_for_process();
  return chosen;
}

}  // namespace reel::detail
