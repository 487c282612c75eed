#include "generator.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "interpreter.h"
#include "sizes.h"

namespace reel_test::programs {

namespace {

/// How often an instruction comes, relative to the others.
struct Weighted {
  Op op;
  int weight;
};

constexpr Weighted weights[] = {
    {Op::constant, 25},
    {Op::parameter, 18},
    {Op::alias, 8},
    {Op::drop, 12},
    {Op::neg, 12},
    {Op::square, 20},
    {Op::sin, 25},
    {Op::cos, 15},
    {Op::exp, 15},
    {Op::tanh, 25},
    {Op::add, 45},
    {Op::sub, 25},
    {Op::mul, 70},
    {Op::div, 15},
    {Op::add_number, 12},
    {Op::mul_number, 20},
    {Op::matmul, 35},
    {Op::sum, 35},
    {Op::sum_axis, 20},
    {Op::copy, 10},
    {Op::concat, 12},
    {Op::stack, 10},
    {Op::dropout, 10},
    {Op::embedding, 12},
    {Op::custom, 15},
    {Op::checkpoint, 30},
    {Op::reshape, 18},
    {Op::transpose, 18},
    {Op::slice, 22},
    {Op::select, 20},
    {Op::expand, 18},
    {Op::flip, 10},
    {Op::stop_gradient, 12},
    {Op::truncate, 8},
    {Op::expand_same, 8},
    {Op::sum_to_same, 6},
    {Op::to_same, 6},
    {Op::einsum_same, 6},
    {Op::add_in_place, 25},
    {Op::sub_in_place, 12},
    {Op::mul_in_place, 22},
    {Op::div_in_place, 8},
    {Op::copy_in_place, 18},
    {Op::add_number_in_place, 8},
    {Op::mul_number_in_place, 12},
    {Op::fill_in_place, 6},
    {Op::zero_in_place, 6},
    {Op::add_to_part, 15},
    {Op::mul_part, 12},
    {Op::copy_to_part, 18},
    {Op::fill_part, 6},
    {Op::write, 10},
    {Op::open_tape, 45},
    {Op::end_tape, 18},
    {Op::pause, 14},
    {Op::resume, 30},
    {Op::watch, 45},
    {Op::gradient, 60},
    {Op::backward, 30},
    {Op::grad, 20},
    {Op::set_grad, 6},
    {Op::clear_grad, 5},
    {Op::hook, 35},
    {Op::trace, 20},
    {Op::traced, 40},
    {Op::hook_op, 15},
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), model_(seed) {}

  Program program() {
    // A weight of this size is one for whose gradient the products of single rows wait.
    is_wide_ = below(300) == 0;
    std::size_t length = 12 + below(28);
    for (std::size_t i = 2 + below(3); i-- > 0;) add(constant(shape()));
    if (is_wide_)
      for (const Sizes& wide : {Sizes{64, 64}, Sizes{1, 64}, Sizes{2, 64}}) add(constant(wide));
    if (chance(70)) add(on_variable(Op::parameter));
    if (chance(80)) add(open_tape());
    if (chance(70)) add(next(Op::watch));
    for (std::size_t tries = 0; tries < 20 * length && program_.size() < length && !is_over_; ++tries)
      add(next(pick()));
    return program_;
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool chance(unsigned percent) { return below(100) < percent; }
  double value() { return static_cast<double>(static_cast<int>(below(31)) - 15) / 10; }

  Op pick() {
    int total = 0;
    for (const Weighted& weighted : weights) total += weighted.weight;
    auto left = static_cast<int>(below(static_cast<std::size_t>(total)));
    if (is_wide_ && chance(30)) return chance(50) ? Op::matmul : chance(50) ? Op::tanh : Op::add;
    for (const Weighted& weighted : weights) {
      left -= weighted.weight;
      if (left < 0) return weighted.op;
    }
    return Op::sum;
  }

  Sizes shape() {
    static const Sizes shapes[] = {{}, {2}, {3}, {1}, {2, 3}, {3, 2}, {2, 2}, {1, 3}, {3, 1}, {2, 1, 2}};
    return shapes[below(std::size(shapes))];
  }

  Instruction constant(const Sizes& shape) {
    Instruction in{.op = Op::constant, .result = new_number(), .numbers = shape};
    if (count_of(shape) > 12) {
      in.number = static_cast<double>(below(1000));
      return in;
    }
    for (std::int64_t i = 0; i < count_of(shape); ++i) in.values.push_back(value());
    return in;
  }

  Instruction open_tape() { return {.op = Op::open_tape, .result = new_number(), .numbers = {chance(60), chance(80)}}; }

  Instruction on_variable(Op op) { return {.op = op, .operands = {variable()}}; }

  int new_number() { return next_number_++; }

  // Mostly one of the latest.
  int variable() {
    const std::map<int, int>& all = model_.variables();
    std::size_t back = chance(60) ? below(std::min<std::size_t>(all.size(), 4)) : below(all.size());
    return std::prev(all.end(), static_cast<std::ptrdiff_t>(back) + 1)->first;
  }

  template <class Condition>
  int variable(Condition condition) {
    int found = variable();
    for (int tries = 0; tries < 12 && !condition(model_.tensor(found)); ++tries) found = variable();
    return found;
  }

  int tracked() {
    return variable([&](const ModelTensor& x) { return model_.is_tracked(x) || x.parameter; });
  }

  bool is_computed(const ModelTensor& x) const { return model_.is_tracked(x) && !x.parameter && !model_.is_leaf(x); }

  // One of the latest that was computed.
  int target() {
    return variable([&](const ModelTensor& x) { return is_computed(x) || (chance(3) && model_.is_tracked(x)); });
  }

  int source() {
    if (chance(30)) return tracked();
    return variable([&](const ModelTensor& x) { return x.parameter || (model_.is_tracked(x) && model_.is_leaf(x)); });
  }

  int any_tape() {
    std::vector<int> tapes;
    for (const Interpreter::Scope& scope : model_.scopes())
      if (scope.is_tape) tapes.push_back(scope.number);
    if (tapes.empty()) return -1;
    return chance(75) ? tapes.back() : tapes[below(tapes.size())];
  }

  // A differentiation of next to nothing shows next to nothing.
  bool is_too_early(const Instruction& in) {
    if (in.op != Op::gradient && in.op != Op::backward) return false;
    return !is_computed(model_.tensor(in.operands[0])) && !chance(10);
  }

  // Runs it on the model; what makes no sense is left out, and so are most of the mistakes.
  void add(const Instruction& in) {
    if (in.op == Op::drop && model_.variables().size() < 3) return;
    if (!model_.can_run(in) || is_too_steep(in) || is_too_early(in)) return;
    // A wide model is too large to be copied at each step.
    std::optional<Interpreter> before;
    if (!is_wide_) before = model_;
    Outcome outcome = model_.run(in);
    bool is_mistake = outcome == Outcome::tape_error || outcome == Outcome::shape_error;
    bool is_unknown = outcome == Outcome::unknown;
    if (before && ((is_mistake && !chance(15)) || is_unknown || model_.scale() > 1e4)) {
      model_ = std::move(*before);
      return;
    }
    if (is_unknown) {
      is_over_ = true;
      return;
    }
    program_.push_back(in);
    is_over_ = outcome == Outcome::may_tape_error || model_.scale() > 1e4;
  }

  // Near a pole, or far out, rounding is magnified.
  bool is_too_steep(const Instruction& in) const {
    auto all = [&](int variable, auto condition) {
      std::vector<Scalar> values = model_.values(model_.tensor(variable));
      return std::ranges::all_of(values, condition, &Scalar::value);
    };
    if (in.op == Op::div || in.op == Op::div_in_place)
      return !all(in.operands[1], [](double x) { return std::abs(x) > 0.3; });
    if (in.op == Op::exp) return !all(in.operands[0], [](double x) { return x < 3; });
    return false;
  }

  Instruction next(Op op) {
    switch (op) {
      case Op::constant: return constant(shape());
      case Op::open_tape: return open_tape();
      case Op::pause: return {.op = op, .result = new_number()};
      case Op::end_tape:
      case Op::resume: return end_of_scope(op);
      case Op::watch:
      case Op::hook:
      case Op::trace: return on_tape(op);
      case Op::traced: {
        int tape = any_tape();
        std::size_t traces = tape < 0 ? 0 : model_.traces_of(tape);
        return {.op = op,
                .result = new_number(),
                .scope = traces ? tape : no_scope,
                .numbers = {static_cast<std::int64_t>(below(std::max<std::size_t>(traces, 1)))}};
      }
      case Op::hook_op: {
        int tape = any_tape();
        return {.op = op,
                .result = new_number(),
                .scope = tape < 0 ? no_scope : tape,
                .numbers = {hook_kind(), static_cast<std::int64_t>(below(std::size(hookable_ops)))}};
      }
      case Op::gradient:
      case Op::backward: return differentiation(op);
      case Op::parameter:
      case Op::drop: return on_variable(op);
      case Op::clear_grad:
      case Op::grad:
      case Op::set_grad: return on_leaf(op);
      default: break;
    }
    if (op >= Op::add_in_place && op <= Op::write) return overwrite(op);
    return computation(op);
  }

  Instruction end_of_scope(Op op) {
    Instruction in{.op = op, .scope = no_scope};
    bool any = chance(20);
    for (const Interpreter::Scope& scope : model_.scopes())
      if (scope.is_tape == (op == Op::end_tape) && (!any || chance(50))) in.scope = scope.number;
    // Mostly the innermost.
    bool is_innermost = !model_.scopes().empty() && model_.scopes().back().number == in.scope;
    if (!is_innermost && !chance(15)) in.scope = no_scope;
    return in;
  }

  Instruction on_tape(Op op) {
    Instruction in{.op = op, .scope = any_tape(), .operands = {op == Op::watch ? variable() : tracked()}};
    if (in.scope < 0) in.scope = no_scope;
    if (op == Op::hook) {
      in.result = new_number();
      in.numbers = {hook_kind()};
    }
    return in;
  }

  std::int64_t hook_kind() {
    HookKind kind = chance(10) ? HookKind::fail : chance(60) ? HookKind::scale : HookKind::look;
    return static_cast<std::int64_t>(kind);
  }

  Instruction on_leaf(Op op) {
    Instruction in{.op = op, .operands = {variable([](const ModelTensor& x) { return x.has_leaf; })}};
    if (op == Op::grad) in.result = new_number();
    if (op == Op::set_grad) {
      const Sizes shape = model_.tensor(in.operands[0]).shape;
      in.operands.push_back(variable([&](const ModelTensor& x) { return x.shape == shape; }));
    }
    return in;
  }

  Instruction differentiation(Op op) {
    Instruction in{.op = op, .scope = any_tape(), .numbers = {0, op == Op::gradient && chance(60)}};
    if (in.scope < 0) in.scope = no_scope;
    in.operands = {target()};
    const Sizes shape = model_.tensor(in.operands[0]).shape;
    if (op == Op::gradient)
      for (std::size_t i = 1 + below(3); i-- > 0;) in.operands.push_back(source());
    if (count_of(shape) != 1 || chance(30)) {
      in.numbers[0] = chance(95);
      if (in.numbers[0]) in.operands.push_back(seed_for(shape));
    }
    in.result = op == Op::gradient ? next_number_ : -1;
    next_number_ += op == Op::gradient ? results_of(in) : 0;
    return in;
  }

  int seed_for(const Sizes& shape) {
    auto fits = [&](const ModelTensor& x) { return x.shape == shape; };
    int found = variable(fits);
    if (fits(model_.tensor(found)) || chance(10)) return found;
    add(constant(shape));
    return program_.back().result;
  }

  Instruction overwrite(Op op) {
    Instruction in{.op = op, .operands = {variable()}, .number = value()};
    const Sizes shape = model_.tensor(in.operands[0]).shape;
    bool part = op == Op::add_to_part || op == Op::mul_part || op == Op::copy_to_part || op == Op::fill_part;
    Sizes wanted = shape;
    if (part && !shape.empty()) {
      in.numbers = {static_cast<std::int64_t>(below(static_cast<std::size_t>(shape[0])))};
      wanted.erase(wanted.begin());
    }
    if (op == Op::write) in.numbers = {static_cast<std::int64_t>(below(static_cast<std::size_t>(count_of(shape))))};
    bool binary = op == Op::add_in_place || op == Op::sub_in_place || op == Op::mul_in_place ||
                  op == Op::div_in_place || op == Op::copy_in_place || op == Op::add_to_part || op == Op::mul_part ||
                  op == Op::copy_to_part;
    if (binary) in.operands.push_back(variable([&](const ModelTensor& y) { return broadcasts_to(y.shape, wanted); }));
    return in;
  }

  Instruction computation(Op op) {
    Instruction in{
        .op = op, .result = new_number(), .operands = {chance(60) ? tracked() : variable()}, .number = value()};
    const Sizes x = model_.tensor(in.operands[0]).shape;
    auto second = [&](auto condition) {
      in.operands.push_back(variable([&](const ModelTensor& y) { return condition(y.shape); }));
    };
    auto index = [&](std::int64_t count) {
      return static_cast<std::int64_t>(below(static_cast<std::size_t>(std::max<std::int64_t>(count, 1))));
    };
    auto axis = [&] { return index(static_cast<std::int64_t>(x.size())); };
    switch (op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div: second([&](const Sizes& y) { return broadcast(x, y).has_value(); }); break;
      case Op::matmul: second([&](const Sizes& y) { return x.size() == 2 && y.size() == 2 && x[1] == y[0]; }); break;
      case Op::concat:
        second([&](const Sizes& y) { return y.size() == x.size() && (x.size() < 2 || x[1] == y[1]); });
        break;
      case Op::stack: second([&](const Sizes& y) { return y == x; }); break;
      case Op::checkpoint:
        second([&](const Sizes& y) { return broadcasts_to(y, x); });
        in.numbers = {index(5)};
        break;
      case Op::custom: in.numbers = {index(2)}; break;
      case Op::sum_axis: in.numbers = {axis(), chance(50)}; break;
      case Op::flip: in.numbers = {axis()}; break;
      case Op::embedding:
        for (std::size_t i = 1 + below(3); i-- > 0;) in.numbers.push_back(index(x.empty() ? 1 : x[0]));
        break;
      case Op::select: in.numbers = {index(x.empty() ? 1 : x[0])}; break;
      case Op::reshape: in.numbers = other_shape(count_of(x)); break;
      case Op::expand: in.numbers = wider_shape(x); break;
      case Op::slice: {
        std::int64_t along = axis(), size = x.empty() ? 1 : x[static_cast<std::size_t>(along)], start = index(size);
        in.numbers = {along, start, start + 1 + index(size - start), 1 + index(2)};
        break;
      }
      default: break;
    }
    return in;
  }

  Sizes other_shape(std::int64_t count) {
    std::vector<Sizes> shapes{{count}, {1, count}, {count, 1}};
    if (count == 1) shapes.emplace_back();
    for (std::int64_t rows = 2; rows < count; ++rows)
      if (count % rows == 0) shapes.push_back({rows, count / rows});
    return shapes[below(shapes.size())];
  }

  Sizes wider_shape(Sizes shape) {
    for (std::int64_t& size : shape)
      if (size == 1 && chance(70)) size = 2 + static_cast<std::int64_t>(below(2));
    if (shape.size() < 3 && chance(60)) shape.insert(shape.begin(), 2);
    return shape;
  }

  static constexpr int no_scope = 1 << 30;

  std::mt19937_64 random_;
  Interpreter model_;
  Program program_;
  int next_number_ = 0;
  bool is_wide_ = false;
  bool is_over_ = false;
};

}  // namespace

Program random_program(std::uint64_t seed) { return Generator(seed).program(); }

}  // namespace reel_test::programs
