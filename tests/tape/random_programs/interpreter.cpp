#include "interpreter.h"

#include <algorithm>

#include "sizes.h"

namespace reel_test::programs {

Outcome Interpreter::run(const Instruction& instruction) {
  uncertain_ = false;
  hook_calls_.clear();
  try {
    const std::vector<int>& x = instruction.operands;
    switch (instruction.op) {
      case Op::constant: {
        std::vector<Scalar> elements;
        for (double element : elements_of(instruction)) elements.push_back({element});
        variables_[instruction.result] = make(instruction.numbers, std::move(elements));
        break;
      }
      case Op::alias: variables_[instruction.result] = id(x[0]); break;
      case Op::drop: variables_.erase(x[0]); break;
      case Op::open_tape:
      case Op::end_tape:
      case Op::pause:
      case Op::resume: run_scope(instruction); break;
      case Op::gradient: gradient(instruction); break;
      case Op::backward: backward(instruction); break;
      case Op::hook_op:
        op_hooks_.push_back({instruction.scope, instruction.result, hookable_ops[instruction.numbers[1]],
                             static_cast<HookKind>(instruction.numbers[0])});
        break;
      case Op::traced: {
        int found = traced_.at(instruction.scope)[static_cast<std::size_t>(instruction.numbers[0])];
        variables_[instruction.result] =
            live_slot(at(found)) ? unary(Op::copy, found) : make(at(found).shape, values(at(found)));
        break;
      }
      case Op::parameter:
      case Op::watch:
      case Op::hook:
      case Op::trace:
      case Op::grad:
      case Op::set_grad:
      case Op::clear_grad: run_leaf(instruction); break;
      default:
        if (instruction.result < 0)
          overwrite(instruction);
        else
          variables_[instruction.result] = compute(instruction);
    }
  } catch (const Refusal& refusal) {
    return uncertain_ && refusal.outcome != Outcome::tape_error ? Outcome::unknown : refusal.outcome;
  }
  return uncertain_ ? Outcome::may_tape_error : Outcome::done;
}

void Interpreter::run_leaf(const Instruction& instruction) {
  int x = id(instruction.operands[0]);
  switch (instruction.op) {
    case Op::parameter: {
      int slot = live_slot(at(x));
      if (slot && slots_[static_cast<std::size_t>(slot)].producer >= 0) throw Refusal{Outcome::tape_error};
      if (!at(x).has_leaf && open_tapes() > 0) check_unused(at(x), 0);
      at(x).parameter = at(x).has_leaf = true;
      break;
    }
    case Op::watch: {
      check_unused(instruction.scope, at(x));
      track(x);
      break;
    }
    case Op::hook: {
      int slot = at(x).parameter ? 0 : tracked_slot(x);
      if (slot) check_unused(instruction.scope, at(x));
      hooks_.push_back({instruction.scope, slot, filling_, at(x).parameter ? x : -1, instruction.result,
                        static_cast<HookKind>(instruction.numbers[0])});
      break;
    }
    case Op::trace: {
      int slot = at(x).parameter ? track(x) : tracked_slot(x);
      if (!at(x).parameter) check_unused(instruction.scope, at(x));
      traces_.push_back({slot, instruction.scope});
      break;
    }
    case Op::grad: variables_[instruction.result] = at(x).grad; break;
    case Op::set_grad: {
      int gradient = id(instruction.operands[1]);
      if (!at(x).has_leaf) throw Refusal{Outcome::tape_error};
      if (at(gradient).shape != at(x).shape) throw Refusal{Outcome::shape_error};
      int copied = make(at(x).shape, values(at(gradient)));
      at(x).grad = copied;
      break;
    }
    default:
      if (!at(x).has_leaf) throw Refusal{Outcome::tape_error};
      at(x).grad = -1;
  }
}

int Interpreter::tracked_slot(int tensor) const {
  int slot = live_slot(at(tensor));
  bool is_old = at(tensor).version != memory(at(tensor)).version;
  if (!slot || (is_old && !at(tensor).parameter)) throw Refusal{Outcome::tape_error};
  return slot;
}

bool Interpreter::can_run(const Instruction& instruction) const {
  for (int variable : instruction.operands)
    if (!variables_.contains(variable)) return false;
  if (instruction.scope >= 0 &&
      std::none_of(scopes_.begin(), scopes_.end(), [&](const Scope& s) { return s.number == instruction.scope; }))
    return false;
  if (instruction.op == Op::traced) {
    auto index = static_cast<std::size_t>(instruction.numbers[0]);
    return index < traces_of(instruction.scope) && traced_.at(instruction.scope)[index] >= 0;
  }
  if (instruction.operands.empty()) return true;
  // One of several equal gradients that an outer tape has recorded may be a copy of another, or all may be copies of a
  // third: the library may choose the derivative by one of them.
  auto is_gradient = [&](int variable) {
    int producer = slots_[static_cast<std::size_t>(live_slot(tensor(variable)))].producer;
    if (producer < 0) return false;
    return std::ranges::any_of(entries_[static_cast<std::size_t>(producer)].inputs, [&](const Input& input) {
      int before = slots_[static_cast<std::size_t>(input.slot)].producer;
      return before >= 0 && entries_[static_cast<std::size_t>(before)].derived;
    });
  };
  const Sizes& x = tensor(instruction.operands[0]).shape;
  const Sizes y = instruction.operands.size() > 1 ? tensor(instruction.operands[1]).shape : Sizes{};
  const Sizes& n = instruction.numbers;
  auto rank = static_cast<std::int64_t>(x.size());
  switch (instruction.op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div: return broadcast(x, y).has_value();
    case Op::checkpoint: return broadcasts_to(y, x);
    case Op::matmul: return x.size() == 2 && y.size() == 2 && x[1] == y[0];
    case Op::sum_axis:
    case Op::flip: return n[0] < rank;
    case Op::slice: return n[0] < rank && n[1] < n[2] && n[2] <= x[static_cast<std::size_t>(n[0])];
    case Op::concat: return !x.empty() && x.size() == y.size() && std::equal(x.begin() + 1, x.end(), y.begin() + 1);
    case Op::stack: return x == y;
    case Op::embedding: return rank == 2 && *std::max_element(n.begin(), n.end()) < x[0];
    case Op::reshape: return count_of(n) == count_of(x);
    case Op::transpose: return rank >= 2;
    case Op::select:
    case Op::fill_part:
    case Op::add_to_part:
    case Op::mul_part:
    case Op::copy_to_part: return rank > 0 && n[0] < x[0];
    case Op::expand: return broadcasts_to(x, n) && n != x;
    case Op::einsum_same: return rank == 1;
    case Op::write: return n[0] < count_of(x);
    case Op::hook:
    case Op::trace: return !is_gradient(instruction.operands[0]);
    case Op::gradient:
    case Op::backward: {
      for (int i = 1; i <= results_of(instruction) && instruction.op == Op::gradient; ++i)
        if (is_gradient(instruction.operands[static_cast<std::size_t>(i)])) return false;
      // Whether the pass uses a seed, and so tracks it, is the library's choice.
      const ModelTensor& seed = tensor(instruction.operands.back());
      return n[0] == 0 || !seed.parameter || live_slot(seed);
    }
    case Op::grad: return tensor(instruction.operands[0]).grad >= 0;
    default: return true;
  }
}

}  // namespace reel_test::programs
