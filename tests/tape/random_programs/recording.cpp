#include <algorithm>

#include "interpreter.h"
#include "sizes.h"

// A tape's state of tensors, and its entries.

namespace reel_test::programs {

// Tracked values came to the memory through another handle after this one was made: it has nothing to show for them.
void Interpreter::check_hidden(const ModelTensor& tensor) const {
  const Memory& memory = this->memory(tensor);
  if (memory.tracked_by != 0 && tensor.version < memory.tracked_version) throw Refusal{Outcome::tape_error};
}

// A parameter may be overwritten under NoRecord; what else was is no longer what was recorded.
void Interpreter::check_operand(const ModelTensor& x) const {
  if (!is_recording()) return;
  if (x.parameter) {
    if (memory(x).tracked_by == filling_) check_hidden(x);
  } else if (live_slot(x)) {
    if (x.version != memory(x).version) throw Refusal{Outcome::tape_error};
  } else {
    if (x.filling != 0) throw Refusal{Outcome::tape_error};
    check_hidden(x);
  }
}

// An operand, whose use is not recorded.
Interpreter::Operand Interpreter::accept(int tensor) {
  Operand operand{tensor, 0, {}};
  ModelTensor& x = at(tensor);
  check_operand(x);
  if (is_recording()) operand.slot = x.parameter ? track(tensor) : live_slot(x);
  operand.values = values(x);
  if (!operand.slot) return operand;
  const std::vector<int>& nodes = slots_[static_cast<std::size_t>(operand.slot)].nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) operand.values[i].node = nodes[i];
  return operand;
}

void Interpreter::record_use(int tensor) {
  ModelTensor& x = at(tensor);
  if (is_recording() && !x.parameter && x.filling == 0) x.use = {filling_, clock_};
}

void Interpreter::record_possible_use(int tensor) {
  ModelTensor& x = at(tensor);
  if (is_recording() && !x.parameter && x.filling == 0) x.possible_use = {filling_, clock_};
}

Interpreter::Operand Interpreter::operand(int tensor) {
  Operand operand = accept(tensor);
  record_use(tensor);
  return operand;
}

// An op that is refused for one operand has not used the other.
std::pair<Interpreter::Operand, Interpreter::Operand> Interpreter::operands(int x, int y) {
  std::pair<Operand, Operand> both;
  both.first = accept(x);
  both.second = accept(y);
  record_use(x);
  record_use(y);
  return both;
}

int Interpreter::new_slot(std::vector<int> nodes) {
  slots_.push_back({.nodes = std::move(nodes)});
  return static_cast<int>(slots_.size()) - 1;
}

int Interpreter::track(int tensor) {
  ModelTensor& x = at(tensor);
  if (int slot = live_slot(x)) return slot;
  if (memory(x).tracked_by == filling_) check_hidden(x);
  int slot = new_slot(nodes_of(tensor));
  for (int node : slots_.back().nodes) scalars_.assign(node, slot);
  slots_[static_cast<std::size_t>(slot)].leaf = tensor;
  slots_[static_cast<std::size_t>(slot)].filling_before = x.filling;
  slots_[static_cast<std::size_t>(slot)].use_before = x.use;
  slots_[static_cast<std::size_t>(slot)].possible_use_before = x.possible_use;
  leaves_.push_back(slot);
  assign_slot(tensor, slot);
  return slot;
}

std::vector<int> Interpreter::nodes_of(int tensor) {
  ModelTensor& x = at(tensor);
  if (x.nodes_filling == filling_ && x.nodes_version == memory(x).version) return x.nodes;
  x.nodes.clear();
  for (Scalar value : values(x)) x.nodes.push_back(scalars_.variable(value).node);
  x.nodes_filling = filling_;
  x.nodes_version = memory(x).version;
  return x.nodes;
}

// If a tape watches the tensor later, derivatives that use it from then on depend on it.
void Interpreter::accumulate_nodes(Operand& operand) {
  if (operand.slot) return;
  std::vector<int> nodes = nodes_of(operand.tensor);
  for (std::size_t i = 0; i < nodes.size(); ++i) operand.values[i].node = nodes[i];
}

void Interpreter::assign_slot(int tensor, int slot) {
  ModelTensor& x = at(tensor);
  x.slot = slot;
  x.use = x.possible_use = {};
  x.filling = slot ? filling_ : 0;
  x.version = memory(x).version;
  if (slot) slots_[static_cast<std::size_t>(slot)].shape = x.shape;
}

void Interpreter::add_input(std::vector<Input>& inputs, int slot, std::vector<Need> needs) {
  if (!slot) return;
  for (Input& input : inputs)
    if (input.slot == slot) {
      input.needs.insert(input.needs.end(), needs.begin(), needs.end());
      return;
    }
  inputs.push_back({slot, std::move(needs)});
}

Interpreter::Need Interpreter::need(const Operand& operand) const {
  const ModelTensor& x = at(operand.tensor);
  return {x.memory, memory(x).version, operand.tensor, operand.slot};
}

// Each element of a slot has a node of its own, also where two elements are equal or one is a constant.
int Interpreter::record(int begin, const std::vector<Scalar>& values, std::vector<Input> inputs, bool checkpoint) {
  if (inputs.empty()) return 0;
  std::vector<int> nodes;
  nodes.reserve(values.size());
  int last = -1;  // fresh nodes rise where none is given twice
  for (Scalar value : values) {
    // Values within a checkpoint are computed again for its gradient.
    if (value.node > last && value.node >= begin && !checkpoint)
      last = value.node;
    else
      value = value.node < 0 ? scalars_.variable(value) : scalars_.apply(Rule::copy, value);
    nodes.push_back(value.node);
  }
  int slot = new_slot(std::move(nodes));
  for (int node : slots_.back().nodes) scalars_.assign(node, slot);
  slots_.back().producer = static_cast<int>(entries_.size());
  entries_.push_back({std::move(inputs), slot, {{begin, scalars_.count()}}, false, checkpoint});
  return slot;
}

// Records the ops of a differentiation. `of`: the entry whose gradient it is, whose nodes it refers to.
int Interpreter::record_derived(int begin, const std::vector<Scalar>& values, std::vector<Input> inputs,
                                const Entry* of) {
  int slot = record(begin, values, std::move(inputs), of && of->checkpoint);
  if (!slot) return 0;
  entries_.back().derived = true;
  if (of) entries_.back().nodes.insert(entries_.back().nodes.end(), of->nodes.begin(), of->nodes.end());
  return slot;
}

int Interpreter::finish(int begin, const Sizes& shape, const std::vector<Scalar>& values, std::vector<Input> inputs) {
  int result = make(shape, values);
  if (int slot = record(begin, values, std::move(inputs))) assign_slot(result, slot);
  return result;
}

void Interpreter::clear_tape() {
  for (int slot : leaves_) {
    const Slot& leaf = slots_[static_cast<std::size_t>(slot)];
    if (at(leaf.leaf).filling == filling_) at(leaf.leaf).filling = leaf.filling_before;
  }
  leaves_.clear();
  traces_.clear();
  entries_.clear();
  slots_.resize(1);
  ++filling_;
}

const Interpreter::Scope& Interpreter::tape(int number) const {
  return *std::find_if(scopes_.begin(), scopes_.end(), [&](const Scope& scope) { return scope.number == number; });
}

int Interpreter::open_tapes() const {
  return static_cast<int>(std::count_if(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.is_tape; }));
}

bool Interpreter::is_enclosed(int tape) const {
  return std::find_if(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.is_tape; })->number != tape;
}

// Tracking a tensor that was used before would lose that use's share of the gradient.
void Interpreter::check_unused(const ModelTensor& tensor, int since) {
  ModelTensor::Use use = tensor.use, possible_use = tensor.possible_use;
  if (int number = live_slot(tensor)) {
    const Slot& slot = slots_[static_cast<std::size_t>(number)];
    use = slot.use_before;
    possible_use = slot.possible_use_before;
  }
  if (is_used(use, since)) throw Refusal{Outcome::tape_error};
  uncertain_ |= is_used(possible_use, since);
}

void Interpreter::check_unused(int tape, const ModelTensor& tensor) {
  const Scope& scope = this->tape(tape);
  check_unused(tensor, scope.filling == filling_ ? scope.opened_at : 0);
}

void Interpreter::run_scope(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::open_tape:
      if (open_tapes() > 0 && !is_recording()) throw Refusal{Outcome::tape_error};
      scopes_.push_back({.number = instruction.result,
                         .is_tape = true,
                         .persistent = instruction.numbers[0] != 0,
                         .first_slot = static_cast<int>(slots_.size()),
                         .filling = filling_,
                         .opened_at = ++clock_});
      break;
    case Op::pause: scopes_.push_back({.number = instruction.result}); break;
    default: {
      bool was_tape = tape(instruction.scope).is_tape;
      std::erase_if(scopes_, [&](const Scope& scope) { return scope.number == instruction.scope; });
      if (!was_tape) break;
      std::erase_if(hooks_, [&](const Hook& hook) { return hook.tape == instruction.scope; });
      std::erase_if(op_hooks_, [&](const OpHook& hook) { return hook.tape == instruction.scope; });
      std::erase_if(traces_, [&](const Trace& trace) { return trace.tape == instruction.scope; });
      if (open_tapes() == 0) clear_tape();
    }
  }
}

}  // namespace reel_test::programs
