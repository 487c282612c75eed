#pragma once

#include <cstdint>

namespace reel::detail {

/// The instruction sets that the CPU's kernels are compiled for; each contains those before it.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };

/// "AVX-512": the set as users read it.
const char* name_of(InstructionSet set);

/// The largest set that the processor has.
InstructionSet processor_instruction_set();

/// The set called `setting` ("baseline", "avx2" or "avx512"), or `largest` if `setting` is null or empty. Throws:
/// DeviceError if there is no such set, or if it is larger than `largest`.
InstructionSet choose_instruction_set(const char* setting, InstructionSet largest);

/// The set that all kernels of this process use: REEL_INSTRUCTION_SET of the environment, else the processor's largest. The
/// first call chooses it and limits oneDNN to it. Throws: DeviceError if the environment asks for what cannot be had.
InstructionSet instruction_set();

}  // namespace reel::detail
