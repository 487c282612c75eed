#include <algorithm>

#include "interpreter.h"
#include "sizes.h"

// Views, and writing through them.

namespace reel_test::programs {

namespace {

bool reads_destination(Op op) {
  return op != Op::copy_in_place && op != Op::fill_in_place && op != Op::zero_in_place && op != Op::copy_to_part &&
         op != Op::fill_part;
}

bool is_row_major(const Sizes& shape, const Sizes& strides) {
  Sizes wanted = row_major(shape);
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1 && strides[axis] != wanted[axis]) return false;
  return true;
}

}  // namespace

int Interpreter::recorded_view(int x, const Layout& layout, const Layout& logical) {
  int result = view(x, layout.shape, layout.strides, layout.offset);
  Operand a = operand(x);
  std::vector<Scalar> y;
  ModelTensor dense{.memory = 0, .shape = logical.shape, .strides = logical.strides, .offset = logical.offset};
  for (std::int64_t place : places(dense)) y.push_back(a.values[static_cast<std::size_t>(place)]);
  std::vector<Input> inputs;
  add_input(inputs, a.slot);
  if (int slot = record(scalars_.count(), y, std::move(inputs))) assign_slot(result, slot);
  return result;
}

Interpreter::Layout Interpreter::layout_of(const Instruction& instruction, Layout x) {
  const Sizes& n = instruction.numbers;
  switch (instruction.op) {
    case Op::transpose: {
      std::size_t last = x.shape.size() - 1;
      std::swap(x.shape[last], x.shape[last - 1]);
      std::swap(x.strides[last], x.strides[last - 1]);
      return x;
    }
    case Op::slice: {
      auto axis = static_cast<std::size_t>(n[0]);
      x.offset += n[1] * x.strides[axis];
      x.shape[axis] = (n[2] - n[1] + n[3] - 1) / n[3];
      x.strides[axis] *= n[3];
      return x;
    }
    case Op::select:
    case Op::add_to_part:
    case Op::mul_part:
    case Op::copy_to_part:
    case Op::fill_part:
      x.offset += n[0] * x.strides[0];
      x.shape.erase(x.shape.begin());
      x.strides.erase(x.strides.begin());
      return x;
    case Op::expand: {
      Sizes strides(n.size(), 0);
      for (std::size_t i = 1; i <= x.shape.size(); ++i)
        if (x.shape[x.shape.size() - i] == n[n.size() - i]) strides[n.size() - i] = x.strides[x.shape.size() - i];
      return {n, strides, x.offset};
    }
    case Op::flip: {
      auto axis = static_cast<std::size_t>(n[0]);
      x.offset += (x.shape[axis] - 1) * x.strides[axis];
      x.strides[axis] *= -1;
      return x;
    }
    default: return x;
  }
}

int Interpreter::view_op(const Instruction& instruction) {
  int x = id(instruction.operands[0]);
  Sizes shape = at(x).shape, strides = at(x).strides;
  switch (instruction.op) {
    case Op::stop_gradient: return view(x, shape, strides, 0);
    case Op::truncate: {
      int cut = view(x, shape, strides, 0);
      if (is_recording()) traces_.push_back({track(cut), -1});
      return cut;
    }
    case Op::reshape: {
      Layout logical{instruction.numbers, row_major(instruction.numbers)};
      if (is_row_major(shape, strides)) return recorded_view(x, logical, logical);
      if (std::optional<Sizes> found = reshaped(shape, strides, instruction.numbers))
        return recorded_view(x, {instruction.numbers, *found}, logical);
      return recorded_view(unary(Op::copy, x), logical, logical);
    }
    case Op::sum_to_same:
    case Op::to_same: return unary(Op::copy, x);
    default:
      return recorded_view(x, layout_of(instruction, {shape, strides}),
                           layout_of(instruction, {shape, row_major(shape)}));
  }
}

void Interpreter::check_destination(int owner, bool recorded) {
  if (!recorded) return;
  const ModelTensor& x = at(owner);
  if (x.parameter) throw Refusal{Outcome::tape_error};
  if (int slot = live_slot(x); slot && slots_[static_cast<std::size_t>(slot)].producer < 0)
    throw Refusal{Outcome::tape_error};
}

void Interpreter::write_cells(int tensor, const std::vector<Scalar>& values) {
  std::vector<std::int64_t> to = places(at(tensor));
  Memory& memory = memory_of(tensor);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Scalar& value = values[values.size() == 1 ? 0 : i];
    memory.cells[static_cast<std::size_t>(to[i])] = {value.value, -1, value.error};
    scale_ = std::max(scale_, std::abs(value.value));
  }
  ++memory.version;
}

void Interpreter::end_overwrite(int x, bool recorded) {
  Memory& memory = memory_of(x);
  if (!recorded) return;
  memory.tracked_version = memory.version;
  memory.tracked_by = filling_;
}

void Interpreter::overwrite(const Instruction& instruction) {
  int x = id(instruction.operands[0]), y = instruction.operands.size() > 1 ? id(instruction.operands[1]) : -1;
  double number = instruction.op == Op::zero_in_place ? 0 : instruction.number;
  switch (instruction.op) {
    case Op::write: {
      const ModelTensor& to = at(x);
      if (!is_row_major(to.shape, to.strides)) throw Refusal{Outcome::shape_error};
      if (!to.parameter && live_slot(to)) throw Refusal{Outcome::tape_error};
      at(x).use = at(x).possible_use = {};
      memory_of(x).cells[static_cast<std::size_t>(to.offset + instruction.numbers[0])] = {number};
      ++memory_of(x).version;
      break;
    }
    case Op::add_to_part:
    case Op::mul_part:
    case Op::copy_to_part:
    case Op::fill_part: return overwrite_part(instruction, x, y);
    default: return overwrite_whole(instruction.op, x, y, number);
  }
}

void Interpreter::overwrite_whole(Op op, int x, int y, double number) {
  if (repeats(at(x))) throw Refusal{Outcome::shape_error};
  if (y >= 0 && !broadcasts_to(at(y).shape, at(x).shape)) throw Refusal{Outcome::shape_error};
  bool recorded = is_recording(), reads = reads_destination(op);
  check_destination(x, recorded);
  Operand a{x, 0, {}}, b{y, 0, {}};
  if (reads) a = accept(x);
  if (y >= 0) b = operand(y);
  bool was_live = live_slot(at(x)) != 0, tracked = a.slot || b.slot;
  bool shared = y >= 0 && at(y).memory == at(x).memory;
  int value;
  if (y < 0)
    value = reads ? with_number(op, x, number) : make({}, {{number}});
  else if (reads)
    value = binary(op, a, b, true, shared);
  else
    value = unary(Op::copy, y);
  Operand result = operand(value);
  if (y >= 0 && !reads && at(y).shape != at(x).shape) {
    std::vector<Scalar> wide;
    for (std::size_t i : broadcast_places(at(y).shape, at(x).shape)) wide.push_back(result.values[i]);
    std::vector<Input> inputs;
    add_input(inputs, result.slot);
    value = finish(scalars_.count(), at(x).shape, wide, std::move(inputs));
    result = operand(value);
  }
  write_cells(x, result.values);
  if (!recorded) {
    if (!reads && !was_live) assign_slot(x, 0);
    return;
  }
  end_overwrite(x, tracked || was_live);
  assign_slot(x, tracked ? result.slot : 0);
}

void Interpreter::overwrite_part(const Instruction& instruction, int x, int y) {
  Op op = instruction.op;
  Layout logical = layout_of(instruction, {at(x).shape, row_major(at(x).shape)});
  const Sizes& shape = logical.shape;
  int part = recorded_view(x, layout_of(instruction, {at(x).shape, at(x).strides}), logical);
  if (repeats(at(x))) throw Refusal{Outcome::shape_error};
  if (y >= 0 && !broadcasts_to(at(y).shape, shape)) throw Refusal{Outcome::shape_error};
  bool recorded = is_recording(), reads = reads_destination(op);
  check_destination(x, recorded);
  Operand a{part, 0, {}}, b{y, 0, {}}, whole{x, 0, {}};
  if (reads) a = operand(part);
  if (y >= 0) b = operand(y);
  if (recorded) whole = operand(x);
  bool was_live = live_slot(at(part)) != 0, tracked = a.slot || b.slot || whole.slot;
  std::vector<Scalar> values;
  if (y < 0) {
    values.assign(static_cast<std::size_t>(count_of(shape)), {instruction.number});
  } else {
    bool shared = at(y).memory == at(x).memory;
    Operand result = operand(reads ? binary(op, a, b, true, shared) : unary(Op::copy, y));
    for (std::size_t i : broadcast_places(at(result.tensor).shape, shape)) values.push_back(result.values[i]);
    b.slot = result.slot;
  }
  write_cells(part, values);
  if (!recorded) return;
  end_overwrite(x, tracked || was_live);
  if (!tracked) return assign_slot(part, 0);
  for (std::size_t i = 0; i < values.size(); ++i)
    whole.values[static_cast<std::size_t>(logical.offset) + i] = values[i];
  std::vector<Input> inputs;
  add_input(inputs, whole.slot);
  add_input(inputs, b.slot);
  assign_slot(x, record(scalars_.count(), whole.values, std::move(inputs)));
}

}  // namespace reel_test::programs
