#include "cpu_kernels.h"

namespace reel::detail {

// Compiled for each instruction set that has no kernels in this build.
template <>
FillKernels kernels_of<InstructionSet::REEL_TARGET>() {
  return nullptr;
}

}  // namespace reel::detail
