#include "runner.h"

#include <algorithm>
#include <stdexcept>

namespace reel_test::programs {

using namespace reel;

namespace {

struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Shape shape_of(const Sizes& sizes) {
  Shape shape;
  for (std::int64_t size : sizes) shape.push_back(size);
  return shape;
}

Tensor custom_op(CustomKind kind, const Tensor& x) {
  if (kind == CustomKind::uses_input)
    return custom_gradient([](const Tensor& x) { return sin(x); },
                           [](const Tensor& dy, const Tensor& x) { return dy * x * 0.5; }, x);
  return custom_gradient([](const Tensor& x) { return square(x); }, [](const Tensor& dy) { return dy * 3.0; }, x);
}

Tensor checkpointed(CheckpointKind kind, const Tensor& x, const Tensor& w) {
  switch (kind) {
    case CheckpointKind::product: return checkpoint([w](const Tensor& x) { return tanh(x * w); }, x);
    case CheckpointKind::dropout: return checkpoint([](const Tensor& x) { return dropout(x) * sin(x); }, x);
    case CheckpointKind::nested:
      return checkpoint([w](const Tensor& x) { return checkpoint([](const Tensor& x) { return sin(x); }, x) + x * w; },
                        x);
    case CheckpointKind::identity: return checkpoint([](const Tensor& x) { return x; }, x);
    case CheckpointKind::in_place:
      return checkpoint(
          [w](const Tensor& x) {
            Tensor doubled = x * 2.0;
            doubled += w;
            return doubled * x;
          },
          x);
  }
  return {};
}

}  // namespace

Outcome Runner::run(const Instruction& instruction) {
  hook_calls_.clear();
  try {
    act(instruction);
  } catch (const TapeError& error) {
    error_ = error.what();
    return Outcome::tape_error;
  } catch (const ShapeError& error) {
    error_ = error.what();
    return Outcome::shape_error;
  } catch (const UserError&) {
    return Outcome::user_error;
  }
  return Outcome::done;
}

void Runner::end(const std::vector<Interpreter::Scope>& scopes) {
  for (const Interpreter::Scope& scope : scopes)
    scope.is_tape ? tapes_.erase(scope.number) : pauses_.erase(scope.number);
  variables_.clear();
}

void Runner::act(const Instruction& in) {
  switch (in.op) {
    case Op::open_tape:
      tapes_[in.result].emplace(TapeOptions{.persistent = in.numbers[0] != 0, .deferred_products = in.numbers[1] != 0});
      break;
    case Op::end_tape: tapes_.erase(in.scope); break;
    case Op::pause: pauses_[in.result].emplace(); break;
    case Op::resume: pauses_.erase(in.scope); break;
    case Op::drop: variables_.erase(in.operands[0]); break;
    case Op::parameter: operand(in).requires_grad(); break;
    case Op::watch: tapes_.at(in.scope)->watch(operand(in)); break;
    case Op::gradient:
    case Op::backward: differentiate(in); break;
    case Op::set_grad: operand(in).set_grad(operand(in, 1)); break;
    case Op::clear_grad: operand(in).set_grad({}); break;
    case Op::hook: add_hook(in); break;
    case Op::hook_op: add_op_hook(in); break;
    case Op::trace: tapes_.at(in.scope)->trace(operand(in)); break;
    case Op::traced:
      variables_[in.result] = tapes_.at(in.scope)->traced()[static_cast<std::size_t>(in.numbers[0])].gradient;
      break;
    default:
      if (in.result < 0)
        overwrite(in);
      else
        variables_[in.result] = compute(in);
  }
}

Tensor Runner::compute(const Instruction& in) {
  if (in.op == Op::constant) return reel::tensor(elements_of(in), shape_of(in.numbers));
  const Tensor& x = operand(in);
  const Tensor& y = in.operands.size() > 1 ? operand(in, 1) : x;
  const Sizes& n = in.numbers;
  switch (in.op) {
    case Op::alias: return x;
    case Op::neg: return -x;
    case Op::square: return square(x);
    case Op::sin: return sin(x);
    case Op::cos: return cos(x);
    case Op::exp: return exp(x);
    case Op::tanh: return tanh(x);
    case Op::add: return x + y;
    case Op::sub: return x - y;
    case Op::mul: return x * y;
    case Op::div: return x / y;
    case Op::add_number: return x + in.number;
    case Op::mul_number: return x * in.number;
    case Op::matmul: return matmul(x, y);
    case Op::sum: return sum(x);
    case Op::sum_axis: return sum(x, n[0], {.keepdims = n[1] != 0});
    case Op::copy: return copy(x);
    case Op::concat: return concat({x, y});
    case Op::stack: return stack({x, y});
    case Op::dropout: return dropout(x);
    case Op::embedding: return embedding(x, reel::tensor(n), {.row_gradient = !x.is_parameter()});
    case Op::custom: return custom_op(static_cast<CustomKind>(n[0]), x);
    case Op::checkpoint: return checkpointed(static_cast<CheckpointKind>(n[0]), x, y);
    case Op::reshape: return reshape(x, shape_of(n));
    case Op::transpose: return transpose(x);
    case Op::slice: return slice(x, static_cast<int>(n[0]), n[1], n[2], n[3]);
    case Op::select: return x(n[0]);
    case Op::expand: return expand(x, shape_of(n));
    case Op::flip: return flip(x, n[0]);
    case Op::stop_gradient: return stop_gradient(x);
    case Op::truncate: return truncate(x);
    case Op::expand_same: return expand(x, x.shape());
    case Op::sum_to_same: return sum_to(x, x.shape());
    case Op::to_same: return to(x, f64);
    case Op::einsum_same: return einsum("i->i", {x});
    case Op::grad: return x.grad();
    default: throw std::logic_error("no op for " + to_string(in));
  }
}

void Runner::overwrite(const Instruction& in) {
  Tensor& x = operand(in);
  const Tensor& y = in.operands.size() > 1 ? operand(in, 1) : x;
  std::int64_t i = in.numbers.empty() ? 0 : in.numbers[0];
  switch (in.op) {
    case Op::add_in_place: x += y; break;
    case Op::sub_in_place: x -= y; break;
    case Op::mul_in_place: x *= y; break;
    case Op::div_in_place: x /= y; break;
    case Op::copy_in_place: copy_(x, y); break;
    case Op::add_number_in_place: x += in.number; break;
    case Op::mul_number_in_place: x *= in.number; break;
    case Op::fill_in_place: fill_(x, in.number); break;
    case Op::zero_in_place: zero_(x); break;
    case Op::add_to_part: x(i) += y; break;
    case Op::mul_part: x(i) *= y; break;
    case Op::copy_to_part: x(i) = y; break;
    case Op::fill_part: x(i) = in.number; break;
    case Op::write: x.write<double>()[i] = in.number; break;
    default: throw std::logic_error("no function for " + to_string(in));
  }
}

void Runner::differentiate(const Instruction& in) {
  Tape& tape = *tapes_.at(in.scope);
  std::vector<Tensor> sources;
  for (int i = 0; i < results_of(in); ++i) sources.push_back(operand(in, static_cast<std::size_t>(i) + 1));
  GradientOptions options;
  if (in.numbers[0]) options.seed = variables_.at(in.operands.back());
  if (in.numbers[1]) options.unconnected = Unconnected::zeros;
  if (in.op == Op::backward) return tape.backward(operand(in), options);
  std::vector<Tensor> found = tape.gradient(operand(in), sources, options);
  for (std::size_t i = 0; i < found.size(); ++i) variables_[in.result + static_cast<int>(i)] = std::move(found[i]);
}

void Runner::add_hook(const Instruction& in) {
  auto look = [this, number = in.result](const Tensor& gradient) {
    hook_calls_.push_back({number, gradient.to_vector<double>()});
  };
  Tape& tape = *tapes_.at(in.scope);
  switch (static_cast<HookKind>(in.numbers[0])) {
    case HookKind::look: return tape.hook(operand(in), look);
    case HookKind::scale:
      return tape.hook(operand(in), [look](const Tensor& gradient) {
        look(gradient);
        return gradient * -0.5;
      });
    case HookKind::fail:
      return tape.hook(operand(in), [look](const Tensor& gradient) {
        look(gradient);
        throw UserError("enough");
      });
  }
}

void Runner::add_op_hook(const Instruction& in) {
  static constexpr const char* names[] = {"exp", "tanh", "concat", "embedding"};
  auto kind = static_cast<HookKind>(in.numbers[0]);
  tapes_.at(in.scope)->hook_op(names[in.numbers[1]], [this, kind, number = in.result](const OpGradients& gradients) {
    hook_calls_.push_back({number, gradients.outputs[0].to_vector<double>()});
    if (kind == HookKind::fail) throw UserError("enough");
    if (kind == HookKind::look) return;
    for (Tensor& gradient : gradients.inputs)
      if (gradient.defined()) gradient = gradient * -0.5;
  });
}

}  // namespace reel_test::programs
