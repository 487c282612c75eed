#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <reel/reel.h>

#include "interpreter.h"

namespace reel_test::programs {

/// Runs programs on reel.
class Runner {
 public:
  explicit Runner(std::uint64_t seed) { reel::manual_seed(seed); }

  /// Throws: what is thrown that no outcome stands for.
  Outcome run(const Instruction& instruction);

  const reel::Tensor& tensor(int variable) const { return variables_.at(variable); }
  const std::vector<HookCall>& hook_calls() const { return hook_calls_; }
  /// The message of the last error.
  const std::string& error() const { return error_; }
  /// Forgets the variables and ends the scopes, in the order given.
  void end(const std::vector<Interpreter::Scope>& scopes);

 private:
  void act(const Instruction& instruction);
  reel::Tensor compute(const Instruction& instruction);
  void overwrite(const Instruction& instruction);
  void differentiate(const Instruction& instruction);
  void add_hook(const Instruction& instruction);
  void add_op_hook(const Instruction& instruction);
  reel::Tensor& operand(const Instruction& instruction, std::size_t i = 0) {
    return variables_.at(instruction.operands[i]);
  }

  std::map<int, reel::Tensor> variables_;
  std::map<int, std::optional<reel::Tape>> tapes_;
  std::map<int, std::optional<reel::NoRecord>> pauses_;
  std::vector<HookCall> hook_calls_;
  std::string error_;
};

}  // namespace reel_test::programs
