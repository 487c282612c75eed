#include "trace.h"

#include <algorithm>
#include <utility>

#include <reel/nn/module.h>

#include "../../core/fail.h"
#include "../../core/storage.h"
#include "model_tensor.h"
#include "writer.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

std::uint32_t version_now(const Tensor& tensor) {
  return tensor.body().storage->version.load(std::memory_order_relaxed);
}

std::string module_path_now() {
  const ActiveModule* call = context().module_call;
  return call ? call->module_path() : std::string();
}

}  // namespace

const char* TracedStep::name() const {
  switch (kind) {
    case StepKind::op: return op->name;
    case StepKind::size: return "io::onnx::size_of";
    case StepKind::scan: return "io::onnx::scan";
    case StepKind::loop: return "io::onnx::loop";
  }
  return "";
}

Tracer::Tracer(std::span<const Tensor> inputs) : ListenerScope(detail::context()) {
  levels_.emplace_back();
  add_inputs(inputs);
}

Tracer* Tracer::current() { return find_listener<Tracer>(context().listener); }

void Tracer::add_inputs(std::span<const Tensor> inputs) {
  std::size_t level = levels_.size() - 1;
  for (const Tensor& input : inputs)
    add_value(level, {.tensor = input, .kind = TracedValue::Kind::input, .varies = true});
}

ValueId Tracer::add_value(std::size_t level, TracedValue value) {
  value.version = version_now(value.tensor);
  Trace& trace = *levels_[level].trace;
  auto id = static_cast<ValueId>(trace.values.size());
  levels_[level].ids.insert_or_assign(&value.tensor.body(), id);
  trace.values.push_back(std::move(value));
  return id;
}

// Checkpoints and derivatives pass aliases of tensors to their functions.
ValueId Tracer::find_in(const Level& level, const Tensor& tensor) const {
  const Body& body = tensor.body();
  if (auto found = level.ids.find(&body); found != level.ids.end()) return found->second;
  const std::vector<TracedValue>& values = level.trace->values;
  for (std::size_t i = values.size(); i-- > 0;)
    if (const Body& other = values[i].tensor.body();
        other.storage == body.storage && other.data == body.data && other.dtype == body.dtype &&
        values[i].tensor.shape() == tensor.shape() && values[i].tensor.strides() == tensor.strides())
      return static_cast<ValueId>(i);
  return no_value;
}

// The id of a tensor that this level or one around it has made or was given.
ValueId Tracer::find(std::size_t level, const Tensor& tensor) {
  Level& own = levels_[level];
  if (ValueId found = find_in(own, tensor); found != no_value || level == 0) return found;
  ValueId outside = find(level - 1, tensor);
  if (outside == no_value) return no_value;
  ValueId id = add_value(level, levels_[level - 1].trace->values[static_cast<std::size_t>(outside)]);
  own.trace->captured.emplace(id, outside);
  return id;
}

ValueId Tracer::id_of(std::size_t level, const Tensor& tensor) {
  if (!tensor.defined()) return no_value;
  ValueId found = find(level, tensor);
  if (found != no_value) {
    const TracedValue& value = levels_[level].trace->values[static_cast<std::size_t>(found)];
    if (value.version != version_now(tensor)) {
      Location where = tensor.body().storage->last_overwrite();
      fail<Error>("io::onnx::save", where,
                  "a tensor that was used or made before is overwritten here, or its base is, and used again; an ONNX "
                  "graph has no such values: compute a new tensor instead");
    }
    return found;
  }
  return add_value(level, {.tensor = tensor, .name = name_of(tensor)});
}

std::string Tracer::name_of(const Tensor& tensor) {
  const Body& body = tensor.body();
  if (auto found = names_.find(&body); found != names_.end()) return found->second;
  const auto* call = static_cast<const nn::ModuleCall*>(detail::context().module_call);
  if (call) {
    const nn::Module& model = call->module().outermost();
    for (const auto& members : {model.named_parameters(), model.named_buffers()})
      for (const NamedTensor& member : members) names_[&member.tensor.body()] = member.name;
    if (auto found = names_.find(&body); found != names_.end()) return found->second;
  }
  return body.leaf ? body.leaf->name : std::string();
}

void Tracer::starting(const Call& call, Location where) {
  if (listens()) {
    Running running{&call, {}};
    // Before the op runs, which may overwrite them.
    for (const Tensor* input : call.inputs) running.inputs.push_back(id_of(levels_.size() - 1, *input));
    running_.push_back(std::move(running));
  }
  ListenerScope::starting(call, where);
}

void Tracer::finished(const Call& call, Location where) {
  ListenerScope::finished(call, where);
  // Calls of a batch_map's examples overlap.
  auto running = std::ranges::find(running_, &call, &Running::call);
  if (running == running_.end()) return;
  TracedStep step{.op = &call.op, .inputs = std::move(running->inputs), .where = where};
  running_.erase(running);
  step.attributes.assign(call.attribute_bytes.begin(), call.attribute_bytes.end());
  step.module = module_path_now();
  add(std::move(step), {}, call.outputs);
}

void Tracer::failed(const Call& call) noexcept {
  std::erase_if(running_, [&](const Running& running) { return running.call == &call; });
  ListenerScope::failed(call);
}

bool Tracer::varies(const Tensor& tensor) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    if (ValueId found = find_in(*level, tensor); found != no_value)
      return level->trace->values[static_cast<std::size_t>(found)].varies;
  return false;
}

void Tracer::reading(const Tensor& tensor, const char* by, Location where) {
  if (listens() && varies(tensor))
    fail<Error>("io::onnx::save", where,
                "{} reads elements of {}, which depend on an input or on the step of a loop: what the program makes of "
                "them would be fixed in the file; compute it with ops, or capture in the function what is constant "
                "instead of passing it as an input",
                by, describe(tensor));
  ListenerScope::reading(tensor, by, where);
}

void Tracer::add(TracedStep step, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::size_t level = levels_.size() - 1;
  Trace& trace = *levels_[level].trace;
  for (const Tensor& input : inputs) step.inputs.push_back(id_of(level, input));
  auto varies = [&](ValueId id) { return id != no_value && trace.values[static_cast<std::size_t>(id)].varies; };
  bool any_varies = std::ranges::any_of(step.inputs, varies);
  if (step.body)
    for (const auto& [inside, outside] : step.body->captured) any_varies |= varies(outside);
  any_varies &= step.kind != StepKind::size;
  for (const Tensor& output : outputs) {
    auto place = static_cast<std::int32_t>(trace.steps.size());
    step.outputs.push_back(
        output.defined()
            ? add_value(level,
                        {.tensor = output, .kind = TracedValue::Kind::result, .varies = any_varies, .step = place})
            : no_value);
  }
  trace.steps.push_back(std::move(step));
}

void Tracer::begin_body(std::span<const Tensor> inputs) {
  levels_.emplace_back();
  add_inputs(inputs);
}

std::shared_ptr<Trace> Tracer::end_body(std::span<const Tensor> outputs, const char* function, Location where) {
  std::shared_ptr<Trace> body = levels_.back().trace;
  for (const Tensor& output : outputs) {
    if (!output.defined()) fail<Error>(function, where, "the body returns an undefined tensor");
    body->outputs.push_back(id_of(levels_.size() - 1, output));
  }
  levels_.pop_back();
  return body;
}

Trace Tracer::finish(std::span<const Tensor> outputs, const char* function, Location where) {
  for (const Tensor& output : outputs) {
    if (!output.defined()) fail<Error>(function, where, "the function returns an undefined tensor");
    levels_[0].trace->outputs.push_back(id_of(0, output));
  }
  return std::move(*levels_[0].trace);
}

const TracedStep& shown_step(const Trace& trace, std::size_t step) {
  auto is_number = [&](const TracedStep& of) {
    return of.op && std::string_view(of.op->name) == "full" &&
           trace.values[static_cast<std::size_t>(of.outputs[0])].tensor.rank() == 0;
  };
  // Numbers become tensors directly before the op whose operands they are.
  std::size_t next = step;
  while (next + 1 < trace.steps.size() && is_number(trace.steps[next])) ++next;
  bool takes_it = next > step && std::ranges::count(trace.steps[next].inputs, trace.steps[step].outputs[0]) > 0;
  return trace.steps[takes_it ? next : step];
}

std::size_t first_difference(const Trace& a, const Trace& b, bool numbers) {
  auto alike = [numbers](const Trace& of, const Trace& other, ValueId x, ValueId y) {
    if (x != y) return false;
    if (x == no_value) return true;
    const TracedValue &first = of.values[static_cast<std::size_t>(x)],
                      &second = other.values[static_cast<std::size_t>(y)];
    return first.kind == second.kind && first.tensor.dtype() == second.tensor.dtype() &&
           first.tensor.rank() == second.tensor.rank() &&
           (!numbers || first.kind != TracedValue::Kind::constant || first.tensor.is(second.tensor) ||
            same_elements(first.tensor, second.tensor));
  };
  std::size_t count = std::min(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    const TracedStep &x = a.steps[i], &y = b.steps[i];
    bool same = x.kind == y.kind && x.op == y.op && x.inputs.size() == y.inputs.size() &&
                x.outputs.size() == y.outputs.size() && x.attributes.size() == y.attributes.size() &&
                (x.body == nullptr) == (y.body == nullptr) &&
                (!numbers || x.attributes == y.attributes || (x.op && is_random(x.op->name)));
    for (std::size_t k = 0; same && k < x.inputs.size(); ++k) same = alike(a, b, x.inputs[k], y.inputs[k]);
    for (std::size_t k = 0; same && k < x.outputs.size(); ++k) same = alike(a, b, x.outputs[k], y.outputs[k]);
    if (same && x.body)
      same = first_difference(*x.body, *y.body, numbers) == no_difference && x.body->captured == y.body->captured;
    if (!same) return i;
  }
  if (a.steps.size() != b.steps.size()) return count;
  for (std::size_t k = 0; a.outputs.size() == b.outputs.size() && k < a.outputs.size(); ++k)
    if (!alike(a, b, a.outputs[k], b.outputs[k])) return count;
  return a.outputs.size() == b.outputs.size() ? no_difference : count;
}

}  // namespace reel::io::onnx
