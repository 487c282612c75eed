#include "program.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reel_test::programs {

namespace {

std::string name(int variable) { return fmt::format("v{}", variable); }

std::string braces(const Sizes& sizes) { return fmt::format("{{{}}}", fmt::join(sizes, ", ")); }

// How a call reads: {x}, {y}: operands; {0}, {1} …: numbers; {n}: all of them in braces; {c}: the constant.
const char* form_of(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::parameter: return "{x}.requires_grad()";
    case Op::alias: return "{x}";
    case Op::drop: return "{x}.reset()";
    case Op::neg: return "-{x}";
    case Op::square: return "square({x})";
    case Op::sin: return "sin({x})";
    case Op::cos: return "cos({x})";
    case Op::exp: return "exp({x})";
    case Op::tanh: return "tanh({x})";
    case Op::add: return "{x} + {y}";
    case Op::sub: return "{x} - {y}";
    case Op::mul: return "{x} * {y}";
    case Op::div: return "{x} / {y}";
    case Op::add_number: return "{x} + {c}";
    case Op::mul_number: return "{x} * {c}";
    case Op::matmul: return "matmul({x}, {y})";
    case Op::sum: return "sum({x})";
    case Op::sum_axis: return "sum({x}, {0}, {{.keepdims = {b1}}})";
    case Op::copy: return "copy({x})";
    case Op::concat: return "concat({{{x}, {y}}})";
    case Op::stack: return "stack({{{x}, {y}}})";
    case Op::dropout: return "dropout({x})";
    case Op::embedding: return "embedding({x}, tensor({n}))";
    case Op::custom: return "custom[{0}]({x})";
    case Op::checkpoint: return "checkpointed[{0}]({x}, {y})";
    case Op::reshape: return "reshape({x}, {n})";
    case Op::transpose: return "transpose({x})";
    case Op::slice: return "slice({x}, {0}, {1}, {2}, {3})";
    case Op::select: return "{x}({0})";
    case Op::expand: return "expand({x}, {n})";
    case Op::flip: return "flip({x}, {0})";
    case Op::stop_gradient: return "stop_gradient({x})";
    case Op::truncate: return "truncate({x})";
    case Op::expand_same: return "expand({x}, {x}.shape())";
    case Op::sum_to_same: return "sum_to({x}, {x}.shape())";
    case Op::to_same: return "to({x}, f64)";
    case Op::einsum_same: return "einsum(\"i->i\", {{{x}}})";
    case Op::add_in_place: return "{x} += {y}";
    case Op::sub_in_place: return "{x} -= {y}";
    case Op::mul_in_place: return "{x} *= {y}";
    case Op::div_in_place: return "{x} /= {y}";
    case Op::copy_in_place: return "copy_({x}, {y})";
    case Op::add_number_in_place: return "{x} += {c}";
    case Op::mul_number_in_place: return "{x} *= {c}";
    case Op::fill_in_place: return "fill_({x}, {c})";
    case Op::zero_in_place: return "zero_({x})";
    case Op::add_to_part: return "{x}({0}) += {y}";
    case Op::mul_part: return "{x}({0}) *= {y}";
    case Op::copy_to_part: return "{x}({0}) = {y}";
    case Op::fill_part: return "{x}({0}) = {c}";
    case Op::write: return "{x}.write<double>()[{0}] = {c}";
    case Op::watch: return "{t}.watch({x})";
    case Op::grad: return "{x}.grad()";
    case Op::set_grad: return "{x}.set_grad({y})";
    case Op::clear_grad: return "{x}.set_grad({{}})";
    case Op::hook: return "{t}.hook({x}, hook[{0}])";
    case Op::trace: return "{t}.trace({x})";
    case Op::traced: return "{t}.traced()[{0}].gradient";
    case Op::hook_op: return "{t}.hook_op(hookable_op[{1}], hook[{0}])";
    default: return "";
  }
}

std::string call(const Instruction& in) {
  std::string text;
  auto number = [&](std::size_t i) { return i < in.numbers.size() ? in.numbers[i] : 0; };
  text = fmt::format(fmt::runtime(form_of(in)), number(0), number(1), number(2), number(3),
                     fmt::arg("x", in.operands.empty() ? "" : name(in.operands[0])),
                     fmt::arg("y", in.operands.size() < 2 ? "" : name(in.operands[1])),
                     fmt::arg("n", braces(in.numbers)), fmt::arg("c", in.number), fmt::arg("b1", number(1) != 0),
                     fmt::arg("t", fmt::format("tape{}", in.scope)));
  return text;
}

std::string differentiation(const Instruction& in) {
  bool seeded = in.numbers[0] != 0, zeros = in.numbers[1] != 0;
  std::vector<std::string> sources;
  for (std::size_t i = 1; i + (seeded ? 1 : 0) < in.operands.size(); ++i) sources.push_back(name(in.operands[i]));
  std::string options;
  if (seeded) options = ".seed = " + name(in.operands.back());
  if (zeros) options += (seeded ? ", " : "") + std::string(".unconnected = Unconnected::zeros");
  if (!options.empty()) options = ", {" + options + "}";
  std::string tape = fmt::format("tape{}", in.scope), target = name(in.operands[0]);
  if (in.op == Op::backward) return fmt::format("{}.backward({}{});", tape, target, options);
  std::vector<std::string> results;
  for (int i = 0; i < results_of(in); ++i) results.push_back(name(in.result + i));
  return fmt::format("auto [{}] = {}.gradient({}, {{{}}}{});", fmt::join(results, ", "), tape, target,
                     fmt::join(sources, ", "), options);
}

}  // namespace

std::vector<double> elements_of(const Instruction& constant) {
  if (!constant.values.empty()) return constant.values;
  std::int64_t count = 1;
  for (std::int64_t size : constant.numbers) count *= size;
  std::vector<double> elements;
  for (std::int64_t i = 0; i < count; ++i)
    elements.push_back(0.1 * std::sin(constant.number + static_cast<double>(i * i)));
  return elements;
}

int results_of(const Instruction& instruction) {
  if (instruction.op == Op::gradient)
    return static_cast<int>(instruction.operands.size()) - 1 - (instruction.numbers[0] ? 1 : 0);
  return instruction.result >= 0 ? 1 : 0;
}

std::string to_string(const Instruction& in) {
  switch (in.op) {
    case Op::constant:
      if (in.values.empty())
        return fmt::format("Tensor {} = tensor<double>(elements({}), {});", name(in.result), in.number,
                           braces(in.numbers));
      return fmt::format("Tensor {} = tensor<double>({{{}}}, {});", name(in.result), fmt::join(in.values, ", "),
                         braces(in.numbers));
    case Op::open_tape:
      return fmt::format("Tape tape{}({{.persistent = {}, .deferred_products = {}}});", in.result, in.numbers[0] != 0,
                         in.numbers[1] != 0);
    case Op::end_tape: return fmt::format("tape{}.~Tape();", in.scope);
    case Op::pause: return fmt::format("NoRecord pause{};", in.result);
    case Op::resume: return fmt::format("pause{}.~NoRecord();", in.scope);
    case Op::gradient:
    case Op::backward: return differentiation(in);
    default: break;
  }
  bool defines = in.result >= 0 && in.op != Op::hook && in.op != Op::hook_op;
  return defines ? fmt::format("Tensor {} = {};", name(in.result), call(in)) : call(in) + ";";
}

std::string to_string(const Program& program) {
  std::string lines;
  for (const Instruction& instruction : program) lines += "  " + to_string(instruction) + "\n";
  return lines;
}

}  // namespace reel_test::programs
