#include "instruction_set.h"

#include "cpu_kernels.h"

#define REEL_JOIN(a, b) a##b
#define REEL_NAME(target) REEL_JOIN(instruction_set_, target)

namespace reel::detail {

const InstructionSet& REEL_NAME(REEL_TARGET)() {
  static constexpr InstructionSet set{REEL_TARGET::fill_copy, REEL_TARGET::fill_elementwise, REEL_TARGET::fill_reduce,
  static constexpr InstructionSet set{REEL_TARGET::fill_elementwise, REEL_TARGET::fill_matmul, REEL_TARGET::fill_reduce,
                                      REEL_TARGET::fill_softmax, REEL_TARGET::fill_random};
  static constexpr InstructionSet set{REEL_TARGET::fill_elementwise, REEL_TARGET::fill_reduce,
                                      REEL_TARGET::fill_argmax,      REEL_TARGET::fill_mapped_sums,
                                      REEL_TARGET::fill_softmax,     REEL_TARGET::fill_random};
  return set;
}

}  // namespace reel::detail
