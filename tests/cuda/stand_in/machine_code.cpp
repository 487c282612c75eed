#include "machine_code.h"

#include <algorithm>
#include <cstring>

// Instructions have 16 bytes: an opcode of 12 bits, and the type of its operands from bit 73 on.
// Source: what nvcc makes of the kernels in probe.cu for sm_80 and sm_90.

namespace reel_test::stand_in {
namespace {

struct Instruction {
  unsigned opcode, type;
};

template <class F>
void for_each_instruction(const Kernel& kernel, const F& f) {
  for (std::size_t place = 0; place + 16 <= kernel.code.size(); place += 16) {
    std::uint64_t words[2];
    std::memcpy(words, kernel.code.data() + place, sizeof words);
    f(Instruction{static_cast<unsigned>(words[0] & 0xfff), static_cast<unsigned>(words[1] >> 9 & 7)});
  }
}

bool is_floating_atomic(Instruction instruction, int architecture) {
  if (architecture >= 90)
    return instruction.opcode == 0x9a2 || instruction.opcode == 0x9a3 || instruction.opcode == 0x9a6;
  bool is_atomic = instruction.opcode == 0x98e || instruction.opcode == 0x9a8;
  return is_atomic && (instruction.type == 3 || instruction.type == 4 || instruction.type >= 6);
}

// Loads and stores whose memory is known to be global, and those whose memory is not known.
bool is_load(unsigned opcode) { return opcode == 0x980 || opcode == 0x981; }
bool is_store(unsigned opcode) { return opcode == 0x985 || opcode == 0x986; }

int widest(const Kernel& kernel, bool (*is_meant)(unsigned opcode)) {
  constexpr int bytes_of[] = {1, 1, 2, 2, 4, 8, 16, 0};
  int found = 0;
  for_each_instruction(kernel, [&](Instruction instruction) {
    if (is_meant(instruction.opcode)) found = std::max(found, bytes_of[instruction.type]);
  });
  return found;
}

}  // namespace

bool adds_atomically(const Kernel& kernel) {
  bool found = false;
  for_each_instruction(kernel,
                       [&](Instruction instruction) { found |= is_floating_atomic(instruction, kernel.architecture); });
  return found;
}

int widest_load(const Kernel& kernel) { return widest(kernel, is_load); }
int widest_store(const Kernel& kernel) { return widest(kernel, is_store); }
int widest_access(const Kernel& kernel) { return std::max(widest_load(kernel), widest_store(kernel)); }

}  // namespace reel_test::stand_in
