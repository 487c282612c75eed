#include <algorithm>
#include <cmath>

#include "interpreter.h"
#include "sizes.h"

// The ops' results, element by element, and the values that their gradients need.

namespace reel_test::programs {

namespace {

Rule rule_of(Op op) {
  switch (op) {
    case Op::neg: return Rule::neg;
    case Op::square: return Rule::square;
    case Op::sin: return Rule::sin;
    case Op::cos: return Rule::cos;
    case Op::exp: return Rule::exp;
    case Op::tanh: return Rule::tanh;
    case Op::add:
    case Op::add_number:
    case Op::add_in_place:
    case Op::add_number_in_place:
    case Op::add_to_part: return Rule::add;
    case Op::sub:
    case Op::sub_in_place: return Rule::sub;
    case Op::mul:
    case Op::mul_number:
    case Op::mul_in_place:
    case Op::mul_number_in_place:
    case Op::mul_part: return Rule::mul;
    case Op::div:
    case Op::div_in_place: return Rule::div;
    default: return Rule::copy;
  }
}

// The first word of Philox 4×32-10 for the counter (call, i).
std::uint32_t philox_word(std::uint64_t key, std::uint64_t call, std::uint64_t i) {
  std::uint32_t k[2] = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  std::uint32_t c[4] = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                        static_cast<std::uint32_t>(call), static_cast<std::uint32_t>(call >> 32)};
  for (int round = 0; round < 10; ++round, k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u) {
    std::uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
    std::uint32_t next[4] = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
                             static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
    std::copy(next, next + 4, c);
  }
  return c[0];
}

}  // namespace

int Interpreter::unary(Op op, int x) {
  Operand a = operand(x);
  int begin = scalars_.count();
  std::vector<Scalar> y;
  for (Scalar value : a.values) y.push_back(scalars_.apply(rule_of(op), value));
  bool needs_input = op == Op::square || op == Op::sin || op == Op::cos;
  std::vector<Input> inputs;
  add_input(inputs, a.slot, needs_input ? std::vector<Need>{need(a)} : std::vector<Need>{});
  int result = finish(begin, at(x).shape, y, std::move(inputs));
  if (op != Op::copy) in_order_of({x}, result);
  if (!a.slot) return result;
  entries_.back().op = op;
  if (op == Op::exp || op == Op::tanh) entries_.back().inputs[0].needs.push_back({at(result).memory, 0});
  return result;
}

int Interpreter::binary(Op op, int x, int y) {
  auto [a, b] = operands(x, y);
  return binary(op, std::move(a), std::move(b), false, false);
}

// `kept`: a copy of the operand is saved in place of the operand.
int Interpreter::binary(Op op, Operand a, Operand b, bool a_is_kept, bool b_is_kept) {
  Rule rule = rule_of(op);
  if (b.slot && !a_is_kept) accumulate_nodes(a);
  if (a.slot && !b_is_kept) accumulate_nodes(b);
  Sizes shape = *broadcast(at(a.tensor).shape, at(b.tensor).shape);
  std::vector<std::size_t> from_a = broadcast_places(at(a.tensor).shape, shape),
                           from_b = broadcast_places(at(b.tensor).shape, shape);
  int begin = scalars_.count();
  std::vector<Scalar> y;
  for (std::size_t i = 0; i < from_a.size(); ++i)
    y.push_back(scalars_.apply(rule, a.values[from_a[i]], b.values[from_b[i]]));
  Need needs_a = need(a), needs_b = need(b);
  if (a_is_kept) needs_a = {-1, 0};
  if (b_is_kept) needs_b = {-1, 0};
  std::vector<Need> for_a, for_b;
  if (rule == Rule::mul) {
    for_a = {needs_b};
    for_b = {needs_a};
  } else if (rule == Rule::div) {
    for_a = for_b = {needs_b};
  }
  std::vector<Input> inputs;
  add_input(inputs, a.slot, for_a);
  add_input(inputs, b.slot, for_b);
  int result = in_order_of({a.tensor, b.tensor}, finish(begin, shape, y, std::move(inputs)));
  if (b.slot && rule == Rule::div)
    for (Input& input : entries_.back().inputs)
      if (input.slot == b.slot) input.needs.push_back({at(result).memory, 0});
  return result;
}

int Interpreter::with_number(Op op, int x, double number) {
  Operand a = operand(x);
  int begin = scalars_.count();
  std::vector<Scalar> y;
  for (Scalar value : a.values) y.push_back(scalars_.apply(rule_of(op), value, {number}));
  std::vector<Input> inputs;
  add_input(inputs, a.slot);
  return in_order_of({x}, finish(begin, at(x).shape, y, std::move(inputs)));
}

int Interpreter::matmul(int x, int y) {
  auto [a, b] = operands(x, y);
  if (b.slot) accumulate_nodes(a);
  if (a.slot) accumulate_nodes(b);
  auto rows = static_cast<std::size_t>(at(x).shape[0]), inner = static_cast<std::size_t>(at(x).shape[1]),
       columns = static_cast<std::size_t>(at(y).shape[1]);
  int begin = scalars_.count();
  std::vector<Scalar> z;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < columns; ++k) {
      Scalar sum;
      for (std::size_t j = 0; j < inner; ++j) {
        Scalar term = scalars_.apply(Rule::mul, a.values[i * inner + j], b.values[j * columns + k]);
        sum = j == 0 ? term : scalars_.apply(Rule::add, sum, term);
      }
      z.push_back(sum);
    }
  std::vector<Input> inputs;
  add_input(inputs, a.slot, {need(b)});
  add_input(inputs, b.slot, {need(a)});
  return finish(begin, {at(x).shape[0], at(y).shape[1]}, z, std::move(inputs));
}

int Interpreter::sum(int x, int axis, bool keep) {
  Operand a = operand(x);
  Sizes kept = at(x).shape, shape = kept;
  if (axis < 0) {
    std::fill(kept.begin(), kept.end(), 1);
    shape.clear();
  } else {
    kept[static_cast<std::size_t>(axis)] = 1;
    shape.erase(shape.begin() + axis);
  }
  std::vector<std::size_t> to = broadcast_places(kept, at(x).shape);
  int begin = scalars_.count();
  std::vector<Scalar> y(static_cast<std::size_t>(count_of(kept)));
  std::vector<bool> begun(y.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    y[to[i]] = begun[to[i]] ? scalars_.apply(Rule::add, y[to[i]], a.values[i]) : a.values[i];
    begun[to[i]] = true;
  }
  std::vector<Input> inputs;
  add_input(inputs, a.slot);
  return finish(begin, keep ? kept : shape, y, std::move(inputs));
}

int Interpreter::joined(Op op, int x, int y) {
  auto [a, b] = operands(x, y);
  Sizes shape = at(x).shape;
  if (op == Op::concat)
    shape[0] += at(y).shape[0];
  else
    shape.insert(shape.begin(), 2);
  std::vector<Scalar> z = a.values;
  z.insert(z.end(), b.values.begin(), b.values.end());
  std::vector<Input> inputs;
  add_input(inputs, a.slot);
  add_input(inputs, b.slot);
  int result = finish(scalars_.count(), shape, z, std::move(inputs));
  if (a.slot || b.slot) entries_.back().op = op;
  return result;
}

int Interpreter::rows(int x, const Sizes& indices) {
  Operand a = operand(x);
  auto width = static_cast<std::size_t>(at(x).shape[1]);
  std::vector<Scalar> y;
  for (std::int64_t row : indices)
    for (std::size_t i = 0; i < width; ++i) y.push_back(a.values[static_cast<std::size_t>(row) * width + i]);
  std::vector<Input> inputs;
  add_input(inputs, a.slot);
  int result =
      finish(scalars_.count(), {static_cast<std::int64_t>(indices.size()), at(x).shape[1]}, y, std::move(inputs));
  if (a.slot) entries_.back().op = Op::embedding;
  return result;
}

std::vector<Scalar> Interpreter::dropped(const std::vector<Scalar>& x) {
  std::uint64_t call = random_calls_++;
  std::vector<Scalar> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    bool is_kept = philox_word(random_seed_, call, i) >= 0x80000000u;
    y.push_back(scalars_.apply(Rule::mul, x[i], {is_kept ? 2.0 : 0.0}));
  }
  return y;
}

int Interpreter::custom(CustomKind kind, int x) {
  Operand a = operand(x);
  int begin = scalars_.count();
  bool uses_input = kind == CustomKind::uses_input;
  std::vector<Scalar> y;
  for (Scalar value : a.values)
    y.push_back(scalars_.apply(uses_input ? Rule::custom_input : Rule::custom_constant, value));
  std::vector<Input> inputs;
  add_input(inputs, a.slot, uses_input ? std::vector<Need>{need(a)} : std::vector<Need>{});
  return in_order_of({x}, finish(begin, at(x).shape, y, std::move(inputs)));
}

int Interpreter::checkpoint(CheckpointKind kind, int x, int captured) {
  bool uses_captured = kind != CheckpointKind::dropout && kind != CheckpointKind::identity;
  if (uses_captured) check_operand(at(captured));
  try {
    check_operand(at(x));
  } catch (const Refusal&) {
    // Its function has run.
    if (kind == CheckpointKind::dropout) ++random_calls_;
    if (uses_captured) record_use(captured);
    throw;
  }
  Operand a = operand(x), w = uses_captured ? operand(captured) : Operand{captured, 0, {}};
  std::vector<Scalar> y;
  int begin = scalars_.count();
  if (kind == CheckpointKind::dropout) {
    y = dropped(a.values);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = scalars_.apply(Rule::mul, y[i], scalars_.apply(Rule::sin, a.values[i]));
  } else if (kind == CheckpointKind::identity) {
    y = a.values;
  } else {
    std::vector<std::size_t> from = broadcast_places(at(captured).shape, at(x).shape);
    for (std::size_t i = 0; i < from.size(); ++i) {
      Scalar v = a.values[i], u = w.values[from[i]];
      if (kind == CheckpointKind::product) {
        y.push_back(scalars_.apply(Rule::tanh, scalars_.apply(Rule::mul, v, u)));
      } else if (kind == CheckpointKind::nested) {
        y.push_back(scalars_.apply(Rule::add, scalars_.apply(Rule::sin, v), scalars_.apply(Rule::mul, v, u)));
      } else {
        Scalar doubled = scalars_.apply(Rule::mul, v, {2});
        y.push_back(scalars_.apply(Rule::mul, scalars_.apply(Rule::add, doubled, u), v));
      }
    }
  }
  // All that is differentiated by is needed for any part of the gradient.
  std::vector<Need> needs{need(a)};
  if (uses_captured) {
    needs.push_back(need(w));
    if (w.slot == 0) needs.back().captured = true;
  }
  std::vector<Input> inputs;
  add_input(inputs, a.slot, needs);
  add_input(inputs, w.slot, needs);
  bool is_view = kind == CheckpointKind::identity;
  bool records = is_view || !inputs.empty();
  int slot = records ? record(begin, y, std::move(inputs), true) : 0;
  int result = is_view ? view(x, at(x).shape, at(x).strides, 0) : make(at(x).shape, y);
  // The result of dropout is row-major, and the first operand of the product.
  if (kind == CheckpointKind::product)
    in_order_of({x, captured}, result);
  else if (!is_view && kind != CheckpointKind::dropout)
    in_order_of({x}, result);
  if (slot) assign_slot(result, slot);
  return result;
}

int Interpreter::compute(const Instruction& instruction) {
  int x = id(instruction.operands[0]), y = instruction.operands.size() > 1 ? id(instruction.operands[1]) : -1;
  switch (instruction.op) {
    case Op::neg:
    case Op::square:
    case Op::sin:
    case Op::cos:
    case Op::exp:
    case Op::tanh:
    case Op::copy: return unary(instruction.op, x);
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div: return binary(instruction.op, x, y);
    case Op::add_number:
    case Op::mul_number: return with_number(instruction.op, x, instruction.number);
    case Op::matmul: return matmul(x, y);
    case Op::sum: return sum(x, -1, false);
    case Op::sum_axis: return sum(x, static_cast<int>(instruction.numbers[0]), instruction.numbers[1] != 0);
    case Op::concat:
    case Op::stack: return joined(instruction.op, x, y);
    case Op::embedding: return rows(x, instruction.numbers);
    case Op::custom: return custom(static_cast<CustomKind>(instruction.numbers[0]), x);
    case Op::checkpoint: return checkpoint(static_cast<CheckpointKind>(instruction.numbers[0]), x, y);
    case Op::dropout: {
      Operand a;
      try {
        a = operand(x);
      } catch (const Refusal&) {
        ++random_calls_;
        throw;
      }
      int begin = scalars_.count();
      std::vector<Scalar> kept = dropped(a.values);
      std::vector<Input> inputs;
      add_input(inputs, a.slot);
      return finish(begin, at(x).shape, kept, std::move(inputs));
    }
    default: return view_op(instruction);
  }
}

}  // namespace reel_test::programs
