#pragma once

#include "instruction_sets.h"

namespace reel::detail {

/// The set's name in messages: "AVX-512".
const char* name_of(InstructionSet set);

/// The set called `setting` ("baseline", "avx2" or "avx512"), or `largest` if `setting` is null or empty. Throws:
/// DeviceError if there is no such set, or if it is larger than `largest`.
InstructionSet choose_instruction_set(const char* setting, InstructionSet largest);

/// The set that all kernels of this process use: that of the environment variable REEL_INSTRUCTION_SET, else the
/// largest that the processor supports and this build contains. The first call chooses it and limits oneDNN to it.
/// Throws: DeviceError if the environment names a set that is unknown or not available.
InstructionSet instruction_set();

}  // namespace reel::detail
