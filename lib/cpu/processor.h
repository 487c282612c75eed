#pragma once

#include "instruction_sets.h"

namespace reel::detail {

/// "AVX-512": the set as users read it.
const char* name_of(InstructionSet set);

/// The set called `setting` ("baseline", "avx2" or "avx512"), or `largest` if `setting` is null or empty. Throws:
/// DeviceError if there is no such set, or if it is larger than `largest`.
InstructionSet choose_instruction_set(const char* setting, InstructionSet largest);

/// The set that all kernels of this process use: REEL_INSTRUCTION_SET of the environment, else the largest that the
/// processor has and this build contains. The
/// first call chooses it and limits oneDNN to it. Throws: DeviceError if the environment asks for what cannot be had.
InstructionSet instruction_set();

}  // namespace reel::detail
