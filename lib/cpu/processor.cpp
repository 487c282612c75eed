#include "processor.h"

#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <reel/error.h>

#include "cpu_kernels.h"
#include "onednn/onednn.h"

namespace reel::detail {
namespace {

constexpr const char* variable = "REEL_INSTRUCTION_SET";
constexpr InstructionSet all_sets[] = {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512};

// The names of the sets that pass the filter: "baseline, avx2".
template <class Filter>
std::string settings_that(Filter filter) {
  std::string listed;
  for (InstructionSet set : all_sets)
    if (filter(set)) listed += (listed.empty() ? "" : ", ") + std::string(setting_of(set));
  return listed;
}
std::string settings_up_to(InstructionSet largest) {
  return settings_that([&](InstructionSet set) { return set <= largest; });
}

InstructionSet largest_with_kernels(InstructionSet of_processor) {
  for (auto set = std::rbegin(all_sets); set != std::rend(all_sets); ++set)
    if (*set <= of_processor && has_kernels(*set)) return *set;
  throw DeviceError(fmt::format("the CPU's kernels of this build are for {}, and this processor has {}; configure the "
                                "build with -Dkernels=all",
                                settings_that(has_kernels), settings_up_to(of_processor)),
                    {});
}

InstructionSet choose_for_process() {
  const char* setting = std::getenv(variable);
  InstructionSet of_processor = processor_instruction_set(), largest = largest_with_kernels(of_processor);
  InstructionSet set = setting && *setting ? choose_instruction_set(setting, of_processor) : largest;
  if (!has_kernels(set))
    throw DeviceError(
        fmt::format("{} is '{}', for which this build has no kernels; it has them for {}, and for all sets "
                    "if it is configured with -Dkernels=all",
                    variable, setting, settings_that(has_kernels)),
        {});
  // Without a setting oneDNN may use instructions beyond the kernels' sets, such as AMX.
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
