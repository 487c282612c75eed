#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/fail.h"
#include "../../ops/if_needed.h"
#include "model_tensor.h"
#include "trace.h"
#include "writer.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

constexpr const char* scan_name = "io::onnx::scan";
constexpr const char* loop_name = "io::onnx::loop";
constexpr const char* size_name = "io::onnx::size_of";

// Pauses a tracer, if there is one.
class Pause : detail::Immovable {
 public:
  explicit Pause(Tracer* tracer) : tracer_(tracer), before_(tracer && !tracer->listens()) {
    if (tracer_) tracer_->pause(true);
  }
  ~Pause() {
    if (tracer_) tracer_->pause(before_);
  }

 private:
  Tracer* tracer_;
  bool before_;
};

std::vector<Tensor> concatenated(std::span<const Tensor> a, std::span<const Tensor> b) {
  std::vector<Tensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

void check_state(const char* function, std::span<const Tensor> before, std::span<const Tensor> after, Location where) {
  if (before.size() != after.size())
    fail<Error>(function, where, "the step returns {} states for {}", after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].defined() || !after[i].defined()) fail<Error>(function, where, "state {} is undefined", i);
    if (before[i].shape() != after[i].shape() || before[i].dtype() != after[i].dtype())
      fail<ShapeError>(function, where, "the step returns {} as state {}, which was {}", describe(after[i]), i,
                       describe(before[i]));
  }
}

// Each step of a loop is traced and must do what the one before did; the last one is the body.
template <class Step>
std::shared_ptr<Trace> traced_body(Tracer& tracer, std::span<const Tensor> inputs, const char* function, Location where,
                                   Step step) {
  if (context().interceptor) fail<Error>(save_name, where, "{} within batch_map cannot be exported", function);
  tracer.begin_body(inputs);
  std::vector<Tensor> outputs;
  try {
    outputs = step();
  } catch (...) {
    tracer.abandon_body();
    throw;
  }
  return tracer.end_body(outputs, function, where);
}

void check_alike(const Trace& first, const Trace& later, const char* function, Location where) {
  std::size_t step = first_difference(first, later, true);
  if (step == no_difference) return;
  const Trace& longer = step < first.steps.size() ? first : later;
  if (step < longer.steps.size()) {
    const TracedStep& shown = shown_step(longer, step);
    fail<Error>(
        save_name, shown.where,
        "the op {} in the body of {} runs in one step and not in another, on other tensors, or with other numbers: all "
        "steps must do the same; what changes from step to step has to be a state, an input or the index",
        shown.name(), function);
  }
  fail<Error>(save_name, where, "the steps of {} return different tensors: all must do the same", function);
}

}  // namespace

ScanResult scan(const std::function<ScanStep(std::span<const Tensor>, std::span<const Tensor>)>& step,
                std::vector<Tensor> state, const std::vector<Tensor>& inputs, Location where) {
  if (inputs.empty()) fail<Error>(scan_name, where, "there are no inputs whose axis 0 says how many steps there are");
  for (const Tensor& input : inputs)
    if (input.rank() == 0 || input.size(0) != inputs[0].size(0) || input.size(0) == 0)
      fail<ShapeError>(scan_name, where, "the inputs {} and {} do not have one number of steps, at least 1, as axis 0",
                       describe(inputs[0]), describe(input));
  Tracer* tracer = Tracer::current();
  std::vector<Tensor> first_state = state;
  std::vector<std::vector<Tensor>> outputs;
  std::shared_ptr<Trace> body;
  for (std::int64_t t = 0; t < inputs[0].size(0); ++t) {
    std::vector<Tensor> parts;
    {
      Pause pause(tracer);
      for (const Tensor& input : inputs) parts.push_back(select(Arg(input, where), 0, t));
    }
    ScanStep made;
    auto run = [&] {
      made = step(state, parts);
      check_state(scan_name, state, made.state, where);
      return concatenated(made.state, made.outputs);
    };
    if (tracer && tracer->listens()) {
      std::shared_ptr<Trace> traced = traced_body(*tracer, concatenated(state, parts), scan_name, where, run);
      if (body) check_alike(*body, *traced, scan_name, where);
      body = std::move(traced);
    } else {
      Pause pause(tracer);
      run();
    }
    state = std::move(made.state);
    if (t > 0 && made.outputs.size() != outputs.size())
      fail<Error>(scan_name, where, "step {} returns {} outputs, and step 0 {}", t, made.outputs.size(),
                  outputs.size());
    outputs.resize(made.outputs.size());
    for (std::size_t i = 0; i < made.outputs.size(); ++i) outputs[i].push_back(std::move(made.outputs[i]));
  }
  ScanResult result{std::move(state), {}};
  {
    Pause pause(tracer);
    CallerScope caller(where);
    for (const std::vector<Tensor>& parts : outputs) result.outputs.push_back(stack(parts));
  }
  if (tracer && tracer->listens())
    tracer->add({.kind = StepKind::scan, .where = where, .body = body, .states = first_state.size()},
                concatenated(first_state, inputs), concatenated(result.state, result.outputs));
  return result;
}

std::vector<Tensor> loop(const Tensor& count,
                         const std::function<std::vector<Tensor>(const Tensor&, std::span<const Tensor>)>& body,
                         std::vector<Tensor> state, Location where) {
  if (count.dtype() != i64)
    fail<DTypeError>(loop_name, where, "the count is {}, not a tensor () of i64", describe(count));
  if (count.rank() != 0) fail<ShapeError>(loop_name, where, "the count is {}, not a tensor () of i64", describe(count));
  Tracer* tracer = Tracer::current();
  bool listens = tracer && tracer->listens();
  std::int64_t steps = value_to_check<std::int64_t>(count);
  if (listens && steps < 1)
    fail<Error>(save_name, where, "a loop without steps cannot be exported: give larger examples");
  std::vector<Tensor> first_state = state;
  std::shared_ptr<Trace> traced;
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Tensor> next;
    Tensor index;
    {
      Pause pause(tracer);
      DeviceGuard here(count.device());
      index = full({}, i, {.dtype = i64});
    }
    auto run = [&] {
      next = body(index, state);
      check_state(loop_name, state, next, where);
      return next;
    };
    if (listens) {
      std::vector<Tensor> given{index};
      std::shared_ptr<Trace> made = traced_body(*tracer, concatenated(given, state), loop_name, where, run);
      if (traced) check_alike(*traced, *made, loop_name, where);
      traced = std::move(made);
    } else {
      Pause pause(tracer);
      run();
    }
    state = std::move(next);
  }
  if (listens) {
    std::vector<Tensor> given{count};
    tracer->add({.kind = StepKind::loop, .where = where, .body = traced, .states = first_state.size()},
                concatenated(given, first_state), state);
  }
  return state;
}

Tensor size_of(const Tensor& x, int axis, Location where) {
  if (!x.defined()) fail<Error>(size_name, where, "the tensor is undefined");
  if (axis < -x.rank() || axis >= x.rank()) fail<ShapeError>(size_name, where, "{} has no axis {}", describe(x), axis);
  if (axis < 0) axis += x.rank();
  Tracer* tracer = Tracer::current();
  bool listens = tracer && tracer->listens();
  Tensor size;
  {
    Pause pause(tracer);
    DeviceGuard here(cpu);
    size = full({}, x.size(axis), {.dtype = i64});
  }
  if (listens) {
    std::vector<Tensor> from{x}, to{size};
    TracedStep step{.kind = StepKind::size, .where = where};
    step.attributes.push_back(static_cast<std::byte>(axis));
    tracer->add(std::move(step), from, to);
  }
  return size;
}

void write_size(Writer& w) {
  auto axis = static_cast<std::int64_t>(w.step().attributes[0]);
  std::string size = w.node("Shape", {w.in(0)}, {attribute("start", axis), attribute("end", axis + 1)});
  w.result(w.node("Squeeze", {size, w.integers({0})}));
}

namespace {

OnnxValue value_of(const std::string& name, const Tensor& tensor, bool is_scalar = false) {
  return {.name = name, .type = onnx_type(tensor.dtype()), .has_axes = is_scalar, .axes = {}};
}

// Runtimes of 2023 refuse the body of a Scan whose outputs have no rank.
OnnxValue output_of(const std::string& name, const Tensor& tensor) {
  OnnxValue value = value_of(name, tensor, true);
  value.axes.resize(static_cast<std::size_t>(tensor.rank()));
  return value;
}

// Fills the graph of a body, whose outputs have names of their own.
void write_body(Writer& w, OnnxGraph& graph, std::size_t inputs, const Trace& body) {
  Writer inner = w.body_writer(graph);
  graph.name = w.shared().fresh("body");
  for (std::size_t i = 0; i < inputs; ++i) {
    std::string name = w.shared().fresh("given");
    inner.name_input(i, name);
    const Tensor& tensor = body.values[i].tensor;
    graph.inputs.push_back(value_of(name, tensor, w.step().kind == StepKind::loop && i == 0));
  }
  inner.write();
  for (std::size_t i = 0; i < body.outputs.size(); ++i) {
    std::string name = inner.node("Identity", {inner.output_name(i)});
    graph.outputs.push_back(output_of(name, body.values[static_cast<std::size_t>(body.outputs[i])].tensor));
  }
}

}  // namespace

void write_scan(Writer& w) {
  auto graph = std::make_shared<OnnxGraph>();
  std::size_t count = w.input_count();
  Names inputs;
  for (std::size_t i = 0; i < count; ++i) inputs.push_back(w.in(i));
  write_body(w, *graph, count, *w.step().body);
  auto scanned = static_cast<std::int64_t>(count - w.step().states);
  Names outputs =
      w.nodes("Scan", inputs, w.output_count(), {attribute("body", graph), attribute("num_scan_inputs", scanned)});
  for (std::size_t i = 0; i < outputs.size(); ++i) w.result(i, outputs[i]);
}

void write_loop(Writer& w) {
  auto graph = std::make_shared<OnnxGraph>();
  std::size_t states = w.step().states;
  Names inputs{w.in(0), ""};
  for (std::size_t i = 0; i < states; ++i) inputs.push_back(w.in(1 + i));
  write_body(w, *graph, 1 + states, *w.step().body);
  // A condition, which stays true.
  std::string given = w.shared().fresh("condition"), kept = w.shared().fresh("condition");
  OnnxNode keep;
  keep.type = "Identity";
  keep.name = w.shared().fresh("keep");
  keep.inputs = {given};
  keep.outputs = {kept};
  graph->nodes.push_back(keep);
  OnnxValue condition{.name = given, .type = OnnxType::boolean, .has_axes = true, .axes = {}};
  graph->inputs.insert(graph->inputs.begin() + 1, condition);
  condition.name = kept;
  graph->outputs.insert(graph->outputs.begin(), condition);
  Names outputs = w.nodes("Loop", inputs, w.output_count(), {attribute("body", graph)});
  for (std::size_t i = 0; i < outputs.size(); ++i) w.result(i, outputs[i]);
}

}  // namespace reel::io::onnx
