#include "cpu/processor.h"

#include <reel/reel.h>

#include <cstdlib>

#include "catch.h"
#include "cpu/onednn/onednn.h"

namespace reel_test {

using namespace reel;
using detail::InstructionSet, detail::choose_instruction_set;

TEST_CASE("kernels use the instruction set that is named, or the processor's largest if none is") {
  CHECK(choose_instruction_set(nullptr, InstructionSet::avx2) == InstructionSet::avx2);
  CHECK(choose_instruction_set("", InstructionSet::avx2) == InstructionSet::avx2);
  CHECK(choose_instruction_set("baseline", InstructionSet::avx2) == InstructionSet::baseline);
  CHECK(choose_instruction_set("avx2", InstructionSet::avx512) == InstructionSet::avx2);
  CHECK(choose_instruction_set("avx512", InstructionSet::avx512) == InstructionSet::avx512);
}

TEST_CASE("an instruction set that there is not, or that the processor lacks, is an error that lists those at hand") {
  CHECK(error_of<DeviceError>([] { choose_instruction_set("sse9", InstructionSet::avx2); }) ==
        "REEL_INSTRUCTION_SET is 'sse9', but must be one of baseline, avx2, avx512; this processor has baseline, avx2");
  CHECK(error_of<DeviceError>([] { choose_instruction_set("AVX2", InstructionSet::avx512); }) ==
        "REEL_INSTRUCTION_SET is 'AVX2', but must be one of baseline, avx2, avx512; this processor has baseline, avx2, "
        "avx512");
  CHECK(error_of<DeviceError>([] { choose_instruction_set("avx512", InstructionSet::avx2); }) ==
        "REEL_INSTRUCTION_SET is 'avx512', which this processor lacks; it has baseline, avx2");
}

TEST_CASE("kernels and oneDNN keep to the instruction set that REEL_INSTRUCTION_SET names") {
  sum(ones({2, 2}));  // the first op chooses the kernels
  const char* named = std::getenv("REEL_INSTRUCTION_SET");
  CHECK(detail::instruction_set() == choose_instruction_set(named, detail::processor_instruction_set()));
  if (named && *named) CHECK(detail::onednn::has_no_more_than(detail::instruction_set()));
}

}  // namespace reel_test
