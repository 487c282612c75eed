// Run when a build is configured with -Dkernels=runnable or native: prints the instruction sets with kernels that the
// machine supports, smallest first.

#include <cstdio>
#include <initializer_list>

#include "instruction_sets.h"

using namespace reel::detail;

int main() {
  for (InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
    if (set <= processor_instruction_set()) std::printf("%s ", setting_of(set));
}
