#include "shrinker.h"

#include <algorithm>

#include "sizes.h"

namespace reel_test::programs {

namespace {

bool uses(const Instruction& instruction, const Instruction& earlier) {
  int first = earlier.result, last = first + results_of(earlier);
  if (first < 0) return false;
  auto is_defined_there = [&](int number) { return number >= first && number < last; };
  return is_defined_there(instruction.scope) || std::ranges::any_of(instruction.operands, is_defined_there);
}

// Without some instructions, and without those that use what they define.
Program without(const Program& program, std::size_t begin, std::size_t end) {
  std::vector<Instruction> left_out;
  Program rest;
  for (std::size_t i = 0; i < program.size(); ++i) {
    bool leaves = (i >= begin && i < end) ||
                  std::ranges::any_of(left_out, [&](const Instruction& out) { return uses(program[i], out); });
    (leaves ? left_out : rest).push_back(program[i]);
  }
  return rest;
}

// With another operand in place of a result, as if the instruction were not there.
Program bypassed(const Program& program, std::size_t i) {
  Program rest = program;
  const Instruction& gone = program[i];
  for (std::size_t k = i + 1; k < rest.size(); ++k)
    for (int& operand : rest[k].operands)
      if (operand == gone.result) operand = gone.operands[0];
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
  return rest;
}

}  // namespace

Program shrunk(Program program, const std::function<bool(const Program&)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto try_it = [&](Program candidate) {
      if (candidate.size() > program.size() || !fails(candidate)) return false;
      program = std::move(candidate);
      return smaller = true;
    };
    for (std::size_t length = program.size() / 2; length > 0; length /= 2)
      for (std::size_t i = program.size(); i-- > 0;) try_it(without(program, i, std::min(i + length, program.size())));
    for (std::size_t i = program.size(); i-- > 0;)
      if (i < program.size() && !program[i].operands.empty() && program[i].result >= 0 && results_of(program[i]) == 1)
        try_it(bypassed(program, i));
  }
  // Fewer sources, no seeds, simpler elements.
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i].op != Op::constant) continue;
    Program candidate = program;
    for (std::size_t k = 0; k < candidate[i].values.size(); ++k) candidate[i].values[k] = static_cast<double>(k + 1);
    if (fails(candidate)) program = candidate;
  }
  return program;
}

}  // namespace reel_test::programs
