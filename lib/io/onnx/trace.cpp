#include "trace.h"

#include <utility>

#include <reel/nn/module.h>

#include "../../core/op_error.h"
#include "../../core/storage.h"

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
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add_value(level, {.tensor = inputs[i], .kind = TracedValue::Kind::input, .input = static_cast<int>(i)});
}

ValueId Tracer::add_value(std::size_t level, TracedValue value) {
  value.version = version_now(value.tensor);
  Trace& trace = *levels_[level].trace;
  auto id = static_cast<ValueId>(trace.values.size());
  levels_[level].ids.insert_or_assign(&value.tensor.body(), id);
  trace.values.push_back(std::move(value));
  return id;
}

// The id of a tensor that this level or one around it has made or was given.
ValueId Tracer::find(std::size_t level, const Tensor& tensor) {
  Level& own = levels_[level];
  if (auto found = own.ids.find(&tensor.body()); found != own.ids.end()) return found->second;
  if (level == 0) return no_value;
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
  if (running_.empty() || running_.back().call != &call) return;
  TracedStep step{.op = &call.op, .inputs = std::move(running_.back().inputs), .where = where};
  running_.pop_back();
  step.attributes.assign(call.attribute_bytes.begin(), call.attribute_bytes.end());
  step.module = module_path_now();
  add(std::move(step), {}, call.outputs);
}

void Tracer::failed(const Call& call) noexcept {
  if (!running_.empty() && running_.back().call == &call) running_.pop_back();
  ListenerScope::failed(call);
}

void Tracer::add(TracedStep step, std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
  std::size_t level = levels_.size() - 1;
  Trace& trace = *levels_[level].trace;
  for (const Tensor& input : inputs) step.inputs.push_back(id_of(level, input));
  for (const Tensor& output : outputs) {
    auto place = static_cast<std::int32_t>(trace.steps.size());
    step.outputs.push_back(output.defined()
                               ? add_value(level, {.tensor = output, .kind = TracedValue::Kind::result, .step = place})
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

std::size_t first_difference(const Trace& a, const Trace& b) {
  auto alike = [](const Trace& of, const Trace& other, ValueId x, ValueId y) {
    if (x != y) return false;
    if (x == no_value) return true;
    const TracedValue &first = of.values[static_cast<std::size_t>(x)],
                      &second = other.values[static_cast<std::size_t>(y)];
    return first.kind == second.kind && first.tensor.dtype() == second.tensor.dtype() &&
           first.tensor.rank() == second.tensor.rank();
  };
  std::size_t count = std::min(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    const TracedStep &x = a.steps[i], &y = b.steps[i];
    bool same = x.kind == y.kind && x.op == y.op && x.inputs.size() == y.inputs.size() &&
                x.outputs.size() == y.outputs.size() && x.attributes.size() == y.attributes.size() &&
                (x.body == nullptr) == (y.body == nullptr);
    for (std::size_t k = 0; same && k < x.inputs.size(); ++k) same = alike(a, b, x.inputs[k], y.inputs[k]);
    for (std::size_t k = 0; same && k < x.outputs.size(); ++k) same = alike(a, b, x.outputs[k], y.outputs[k]);
    if (same && x.body)
      same = first_difference(*x.body, *y.body) == no_difference && x.body->captured == y.body->captured;
    if (!same) return i;
  }
  if (a.steps.size() != b.steps.size()) return count;
  return a.outputs == b.outputs ? no_difference : count;
}

}  // namespace reel::io::onnx
