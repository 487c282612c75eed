#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reel_test::programs {

using Sizes = std::vector<std::int64_t>;

/// The op of a line of a program. `x`, `y` … are its operands, n its numbers, c its constant.
enum class Op : std::uint8_t {
  // Handles.
  constant,   ///< a tensor of shape n with the given values
  parameter,  ///< x.requires_grad()
  alias,      ///< another handle of x
  drop,       ///< x.reset()
  // Ops that compute.
  neg,
  square,
  sin,
  cos,
  exp,
  tanh,
  add,
  sub,
  mul,
  div,
  add_number,
  mul_number,
  matmul,
  sum,
  sum_axis,  ///< along axis n0, kept if n1
  copy,
  concat,  ///< of x and y along the first axis
  stack,
  dropout,
  embedding,   ///< the rows n of x, with a gradient by rows
  custom,      ///< custom_gradient of kind n0
  checkpoint,  ///< of kind n0, which captures y
  // Views.
  reshape,  ///< to shape n
  transpose,
  slice,   ///< along axis n0 from n1 to n2 in steps of n3
  select,  ///< element n0 of the first axis
  expand,  ///< to shape n
  flip,    ///< along axis n0
  stop_gradient,
  truncate,
  // Functions that have nothing to do.
  expand_same,
  sum_to_same,
  to_same,
  einsum_same,
  // In place: x, then y; those of a part write to x(n0).
  add_in_place,
  sub_in_place,
  mul_in_place,
  div_in_place,
  copy_in_place,
  add_number_in_place,
  mul_number_in_place,
  fill_in_place,
  zero_in_place,
  add_to_part,
  mul_part,
  copy_to_part,
  fill_part,
  write,  ///< x.write()[n0] = c
  // Tapes.
  open_tape,  ///< n0: persistent; n1: with deferred products
  end_tape,
  pause,  ///< NoRecord
  resume,
  watch,     ///< x on a tape
  gradient,  ///< of x by the others; n0: a seed is the last operand; n1: unconnected are zeros
  backward,  ///< of x; n0: a seed is the last operand
  grad,
  set_grad,
  clear_grad,
  hook,     ///< on x; n0: the kind
  trace,    ///< of x
  traced,   ///< what the last differentiation found for trace n0
  hook_op,  ///< on hookable op n1; n0: the kind
};

enum class CustomKind : std::uint8_t { constant_factor, uses_input };
enum class CheckpointKind : std::uint8_t { product, dropout, nested, identity, in_place };
enum class HookKind : std::uint8_t { look, scale, fail };
/// Ops that `hook_op` is called for: those that no gradient runs.
constexpr Op hookable_ops[] = {Op::exp, Op::tanh, Op::concat, Op::embedding};

/// One line of a program. Variables, tapes and pauses are known by numbers, each of which is defined once.
struct Instruction {
  Op op;
  int result = -1;  ///< the variable, tape or pause that it defines; of several variables, the first
  int scope = -1;   ///< the tape or pause that it concerns
  std::vector<int> operands = {};
  Sizes numbers = {};
  double number = 0;
  std::vector<double> values = {};
};

using Program = std::vector<Instruction>;

/// The elements of a constant of this many elements: those given, or others that its number stands for.
std::vector<double> elements_of(const Instruction& constant);

/// How many variables an instruction defines.
int results_of(const Instruction& instruction);

/// The program as lines of C++.
std::string to_string(const Program& program);
std::string to_string(const Instruction& instruction);

}  // namespace reel_test::programs
