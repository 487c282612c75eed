#include <algorithm>

#include "interpreter.h"
#include "sizes.h"

// Gradients: a reverse pass over what was recorded, within each entry over its scalar expressions.

namespace reel_test::programs {

// The slot to differentiate. `sources`: a target that is among them may be older than the tape.
int Interpreter::target_of(const Instruction& instruction, const std::vector<int>& sources) {
  ModelTensor& target = at(id(instruction.operands[0]));
  int slot = target.parameter ? track(id(instruction.operands[0])) : live_slot(target);
  if (!slot) throw Refusal{Outcome::tape_error};
  const Scope& scope = tape(instruction.scope);
  bool is_older = scope.filling == filling_ && slot < scope.first_slot && !is_leaf(target);
  bool is_source = std::find(sources.begin(), sources.end(), slot) != sources.end();
  if (is_older && !is_source) throw Refusal{Outcome::tape_error};
  if (!target.parameter && target.version != memory(target).version) throw Refusal{Outcome::tape_error};
  return slot;
}

Interpreter::Adjoint Interpreter::seed_of(const Instruction& instruction, bool recorded) {
  const ModelTensor& target = at(id(instruction.operands[0]));
  if (instruction.numbers[0] == 0) {
    if (count_of(target.shape) != 1) throw Refusal{Outcome::tape_error};
    return {true, {{1}}, 0};
  }
  int seed = id(instruction.operands.back());
  if (at(seed).shape != target.shape) throw Refusal{Outcome::shape_error};
  Adjoint adjoint{true, values(at(seed)), 0};
  if (!recorded) return adjoint;
  try {
    Operand operand = accept(seed);
    record_possible_use(seed);
    return {true, operand.values, operand.slot};
  } catch (const Refusal&) {
    // Whether an op uses the seed, and so refuses it, is the library's choice.
    uncertain_ = true;
    return adjoint;
  }
}

int Interpreter::slot_of(const Hook& hook) const {
  return hook.parameter >= 0 ? live_slot(at(hook.parameter)) : hook.filling == filling_ ? hook.slot : 0;
}

Interpreter::Differentiation Interpreter::begin(const Instruction& instruction, int target, std::vector<int> wanted) {
  Differentiation run;
  int tape = run.tape = instruction.scope;
  if (instruction.numbers[0]) {
    int seed = id(instruction.operands.back());
    run.seed.push_back({at(seed).memory, memory_of(seed).version, seed, live_slot(at(seed))});
  }
  run.target = target;
  run.recorded = is_recorded(tape);
  run.wanted = std::move(wanted);
  for (const Hook& hook : hooks_)
    if (hook.tape == tape && slot_of(hook)) run.wanted.push_back(slot_of(hook));
  traced_[tape].clear();
  for (const Trace& trace : traces_) {
    if (trace.tape != -1 && trace.tape != tape) continue;
    run.wanted.push_back(trace.slot);
    traced_[tape].push_back(-1);
  }

  std::size_t slots = slots_.size();
  run.reached.assign(slots, 0);
  run.leads.assign(slots, 0);
  run.sums.resize(slots);
  run.reached[static_cast<std::size_t>(target)] = 1;
  for (std::size_t slot = static_cast<std::size_t>(target) + 1; slot-- > 1;)
    if (run.reached[slot] && slots_[slot].producer >= 0)
      for (const Input& input : entries_[static_cast<std::size_t>(slots_[slot].producer)].inputs)
        run.reached[static_cast<std::size_t>(input.slot)] = 1;
  for (int slot : run.wanted) run.leads[static_cast<std::size_t>(slot)] = 1;
  for (const Entry& entry : entries_)
    for (const Input& input : entry.inputs)
      if (run.wants(input.slot)) run.leads[static_cast<std::size_t>(entry.output)] = 1;
  return run;
}

void Interpreter::pass_back(Differentiation& run, Adjoint seed) {
  run.sums[static_cast<std::size_t>(run.target)] = std::move(seed);
  scalars_.constants_only = !run.recorded;
  try {
    for (int slot = run.target; slot > 0; --slot) {
      int producer = slots_[static_cast<std::size_t>(slot)].producer;
      if (producer < 0 || !run.sums[static_cast<std::size_t>(slot)].defined) continue;
      complete(run, slot);
      visit(run, entries_[static_cast<std::size_t>(producer)]);
    }
    std::vector<int> leaves = leaves_;
    for (int slot : leaves)
      if (slot <= run.target && run.sums[static_cast<std::size_t>(slot)].defined) complete(run, slot);
  } catch (const Refusal&) {
    scalars_.constants_only = false;
    scalars_.clear_adjoints();
    consume(run.tape);
    throw;
  }
  scalars_.constants_only = false;
}

void Interpreter::consume(int tape) {
  if (open_tapes() == 1 && !this->tape(tape).persistent) clear_tape();
}

void Interpreter::check_needs(const Entry& entry, const Input& input) {
  for (const Need& need : input.needs) {
    if (need.memory < 0) continue;
    bool is_old = memories_[static_cast<std::size_t>(need.memory)].version != need.version;
    if (need.captured) {
      // The function runs again, and may or may not give the same result.
      const ModelTensor& captured = at(need.tensor);
      uncertain_ |= is_old || captured.filling != 0 || captured.parameter;
    } else if (is_old && entry.derived) {
      uncertain_ = true;
    } else if (is_old) {
      throw Refusal{Outcome::tape_error};
    }
  }
}

void Interpreter::visit(Differentiation& run, Entry entry) {
  Adjoint output = run.sums[static_cast<std::size_t>(entry.output)];
  bool any = false;
  for (const Input& input : entry.inputs) {
    if (!run.wants(input.slot)) continue;
    any = true;
    check_needs(entry, input);
    if (!run.recorded) continue;
    for (const Need& need : input.needs) {
      if (need.tensor < 0) continue;
      // Whether this derivative uses the tensor itself, which is tracked by now, or a view of it, is the library's choice.
      if ((entry.derived || need.captured) && is_tracked_since(need)) throw Refusal{Outcome::unknown};
      record_possible_use(need.tensor);
    }
  }
  if (!any) return;
  int begin = scalars_.count();
  const std::vector<int> nodes = slots_[static_cast<std::size_t>(entry.output)].nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) scalars_.add_adjoint(nodes[i], output.values[i]);
  for (const Input& input : entry.inputs)
    for (int node : slots_[static_cast<std::size_t>(input.slot)].nodes) scalars_.keep(node);
  for (auto [first, last] : entry.nodes) scalars_.pull_back(first, last);
  std::vector<Adjoint> found(entry.inputs.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    for (int node : slots_[static_cast<std::size_t>(entry.inputs[k].slot)].nodes)
      found[k].values.push_back(scalars_.adjoint_of(node));
  scalars_.clear_adjoints();
  for (std::size_t k = 0; k < found.size(); ++k) {
    const Input& input = entry.inputs[k];
    if (!run.wants(input.slot)) continue;
    found[k].defined = true;
    if (run.recorded) {
      std::vector<Input> inputs;
      std::vector<Need> needs = input.needs;
      needs.insert(needs.end(), run.seed.begin(), run.seed.end());
      add_input(inputs, output.slot, needs);
      for (int behind : scalars_.slots_behind(found[k].values)) add_input(inputs, behind, needs);
      if (entry.checkpoint)
        for (const Input& other : entry.inputs) add_input(inputs, other.slot, needs);
      found[k].slot = record_derived(begin, found[k].values, std::move(inputs), &entry);
    }
    take_nodes(found[k]);
    for (const OpHook& hook : op_hooks_)
      if (hook.tape == run.tape && hook.op == entry.op && !entry.derived && hook.kind == HookKind::scale)
        found[k] = scaled(std::move(found[k]));
  }
  for (std::size_t h = 0; h < op_hooks_.size(); ++h)
    if (op_hooks_[h].tape == run.tape && op_hooks_[h].op == entry.op && !entry.derived)
      call_hook(output, op_hooks_[h].number, op_hooks_[h].kind);
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k].defined) add_to(run, entry.inputs[k].slot, std::move(found[k]));
}

// The values become those of the slot.
void Interpreter::take_nodes(Adjoint& adjoint) const {
  if (!adjoint.slot) return;
  const std::vector<int>& nodes = slots_[static_cast<std::size_t>(adjoint.slot)].nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) adjoint.values[i].node = nodes[i];
}

void Interpreter::call_hook(const Adjoint& seen, int number, HookKind kind) {
  HookCall call{number, {}};
  for (const Scalar& value : seen.values) {
    call.gradient.push_back(value.value);
    call.errors.push_back(value.error);
  }
  hook_calls_.push_back(std::move(call));
  if (kind == HookKind::fail) throw Refusal{Outcome::user_error};
}

Interpreter::Adjoint Interpreter::scaled(Adjoint adjoint) {
  int begin = scalars_.count();
  for (Scalar& value : adjoint.values) value = scalars_.apply(Rule::mul, value, {-0.5});
  std::vector<Input> inputs;
  add_input(inputs, adjoint.slot);
  adjoint.slot = record_derived(begin, adjoint.values, std::move(inputs), nullptr);
  take_nodes(adjoint);
  return adjoint;
}

void Interpreter::add_to(Differentiation& run, int slot, Adjoint more) {
  Adjoint& sum = run.sums[static_cast<std::size_t>(slot)];
  if (!sum.defined) {
    sum = std::move(more);
    return;
  }
  int begin = scalars_.count();
  for (std::size_t i = 0; i < sum.values.size(); ++i)
    sum.values[i] = scalars_.apply(Rule::add, sum.values[i], more.values[i]);
  std::vector<Input> inputs;
  add_input(inputs, sum.slot);
  add_input(inputs, more.slot);
  sum.slot = record_derived(begin, sum.values, std::move(inputs), nullptr);
  take_nodes(sum);
}

// Hooks see the whole gradient of a slot, and traces what they leave.
void Interpreter::complete(Differentiation& run, int slot) {
  Adjoint& sum = run.sums[static_cast<std::size_t>(slot)];
  for (std::size_t h = 0; h < hooks_.size(); ++h) {
    const Hook hook = hooks_[h];
    if (hook.tape != run.tape || slot_of(hook) != slot) continue;
    call_hook(sum, hook.number, hook.kind);
    if (hook.kind == HookKind::scale) sum = scaled(std::move(sum));
  }
  trace(run, slot);
}

void Interpreter::trace(Differentiation& run, int slot) {
  std::size_t number = 0;
  for (const Trace& trace : traces_) {
    if (trace.tape != -1 && trace.tape != run.tape) continue;
    if (trace.slot == slot) {
      const Adjoint& sum = run.sums[static_cast<std::size_t>(slot)];
      int kept = make(slots_[static_cast<std::size_t>(slot)].shape, sum.values);
      if (sum.slot) assign_slot(kept, sum.slot);
      traced_[run.tape][number] = kept;
    }
    ++number;
  }
}

void Interpreter::gradient(const Instruction& instruction) {
  bool zeros = instruction.numbers[1] != 0;
  std::vector<int> sources(instruction.operands.begin() + 1,
                           instruction.operands.end() - (instruction.numbers[0] ? 1 : 0)),
      slots;
  for (int& source : sources) {
    source = id(source);
    int slot = live_slot(at(source));
    if (!slot && at(source).parameter) slot = track(source);
    if (!slot && !zeros) throw Refusal{Outcome::tape_error};
    if (slot && !at(source).parameter) check_unused(instruction.scope, at(source));
    slots.push_back(slot);
  }
  int target = target_of(instruction, slots);
  Adjoint seed = seed_of(instruction, is_recorded(instruction.scope));
  std::vector<int> wanted = slots;
  std::erase(wanted, 0);
  Differentiation run = begin(instruction, target, std::move(wanted));
  for (int slot : slots)
    if (!zeros && !run.reached[static_cast<std::size_t>(slot)]) throw Refusal{Outcome::tape_error};
  pass_back(run, std::move(seed));

  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Adjoint& found = run.sums[static_cast<std::size_t>(slots[i])];
    std::vector<Scalar> values(static_cast<std::size_t>(count_of(at(sources[i]).shape)));
    std::vector<Input> inputs;
    if (slots[i] && found.defined) {
      values = found.values;
      add_input(inputs, found.slot);
    }
    variables_[instruction.result + static_cast<int>(i)] =
        finish(scalars_.count(), at(sources[i]).shape, values, std::move(inputs));
  }
  consume(instruction.scope);
}

void Interpreter::backward(const Instruction& instruction) {
  int target = target_of(instruction, {});
  Adjoint seed = seed_of(instruction, is_recorded(instruction.scope));
  std::vector<int> parameters;
  for (int slot : leaves_)
    if (at(slots_[static_cast<std::size_t>(slot)].leaf).parameter) parameters.push_back(slot);
  Differentiation run = begin(instruction, target, parameters);
  if (std::none_of(parameters.begin(), parameters.end(),
                   [&](int slot) { return run.reached[static_cast<std::size_t>(slot)]; }))
    throw Refusal{Outcome::tape_error};
  pass_back(run, std::move(seed));
  for (int slot : parameters)
    if (run.sums[static_cast<std::size_t>(slot)].defined)
      commit(slots_[static_cast<std::size_t>(slot)].leaf, run.sums[static_cast<std::size_t>(slot)]);
  consume(instruction.scope);
}

void Interpreter::commit(int parameter, const Adjoint& found) {
  int grad = make(at(parameter).shape, found.values);
  if (int before = at(parameter).grad; before >= 0) {
    std::vector<Scalar> sum = values(at(grad)), old = values(at(before));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = scalars_.apply(Rule::add, sum[i], old[i]);
    grad = make(at(parameter).shape, std::move(sum));
  }
  at(parameter).grad = grad;
}

}  // namespace reel_test::programs
