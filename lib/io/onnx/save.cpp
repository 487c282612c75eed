#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_set>

#include <fmt/format.h>
#include <reel/io/onnx.h>
#include <reel/io/safetensors.h>
#include <reel/no_record.h>
#include <reel/ops/shape.h>
#include <reel/version.h>

#include "../../core/fail.h"
#include "../../core/printable.h"
#include "../atomic_file.h"
#include "message.h"
#include "model_tensor.h"
#include "writer.h"

namespace reel {

void detail::check_input_count(std::size_t inputs, std::size_t parameters, Location where) {
  if (inputs != parameters)
    fail<Error>(io::onnx::save_name, where, "the function takes {} tensors, and {} inputs are given", parameters,
                inputs);
}

}  // namespace reel

namespace reel::io::onnx {

using namespace detail;

namespace {

// The operator set of ONNX 1.12, and the file format that goes with it.
constexpr std::int64_t operator_set = 17, file_format = 8;

void check_names(const std::vector<Input>& inputs, const SaveOptions& options, Location where) {
  if (inputs.empty()) fail<Error>(save_name, where, "there are no inputs");
  std::unordered_set<std::string> names;
  auto check = [&](const char* what, const std::string& name) {
    if (name.empty()) fail<Error>(save_name, where, "an {} has no name", what);
    if (!names.insert(name).second) fail<Error>(save_name, where, "two inputs or outputs have the name '{}'", name);
  };
  for (const Input& input : inputs) {
    check("input", input.name);
    if (!input.example.defined()) fail<Error>(save_name, where, "the input '{}' has no example", input.name);
  }
  for (const std::string& name : options.outputs) check("output", name);
}

Trace traced(const Function& f, const std::vector<Input>& inputs, const NamedAxes& axes, std::size_t run,
             Location where) {
  NoRecord pause;
  std::vector<Tensor> examples;
  // A copy of each, so that no two inputs are one tensor, or one of the model's.
  for (const Input& input : inputs) {
    Tensor example = axes.example(input, run);
    examples.push_back(example.is_parameter() || &example.body() == &input.example.body() ? copy(example) : example);
  }
  Tracer tracer(examples);
  std::vector<Tensor> outputs = f(examples);
  if (outputs.empty()) fail<Error>(save_name, where, "the function returns no tensor");
  return tracer.finish(outputs, save_name, where);
}

void check_alike(const Trace& first, const Trace& other, const NamedAxes& axes, std::size_t run, Location where) {
  std::size_t step = first_difference(first, other);
  if (step == no_difference) return;
  const Trace& longer = step < first.steps.size() ? first : other;
  if (step >= longer.steps.size())
    fail<Error>(save_name, where, "the function returns other results for {} than for {}", axes.sizes_text(run),
                axes.sizes_text(0));
  auto name_in = [&](const Trace& trace) { return step < trace.steps.size() ? trace.steps[step].name() : "no op"; };
  fail<Error>(save_name, longer.steps[step].where,
              "what the function does depends on the size of an axis: here it runs {} for {}, and {} for {}, on other "
              "tensors or after other ops; give a loop over the axis as io::onnx::scan or io::onnx::loop, or fix the "
              "axis by leaving out its name",
              name_in(first), axes.sizes_text(0), name_in(other), axes.sizes_text(run));
}

void add_inputs(OnnxGraph& graph, Export& shared, Writer& writer, const std::vector<Input>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    OnnxValue value{.name = inputs[i].name, .type = onnx_type(inputs[i].example.dtype()), .has_axes = true, .axes = {}};
    for (int axis = 0; axis < inputs[i].example.rank(); ++axis) {
      auto place = static_cast<std::size_t>(axis);
      std::string name = place < inputs[i].axes.size() ? inputs[i].axes[place] : std::string();
      value.axes.push_back({name.empty() ? inputs[i].example.size(axis) : -1, name});
    }
    graph.inputs.push_back(std::move(value));
    shared.taken.insert(inputs[i].name);
    writer.name_input(i, inputs[i].name);
  }
}

// An axis of an output: fixed, one of the named ones, or one with a name of its own.
OnnxAxis output_axis(const NamedAxes& axes, const Numbers& sizes, const std::string& own) {
  if (is_constant(sizes)) return {sizes.front(), {}};
  auto terms = axes.fit(sizes);
  if (terms && terms->size() == 1 && terms->front().factor == 1)
    for (std::size_t axis = 0; axis < axes.names().size(); ++axis)
      if (terms->front().axes == 1u << axis) return {-1, axes.names()[axis]};
  return {-1, own};
}

void add_outputs(OnnxGraph& graph, Writer& writer, const std::vector<Trace>& traces, const NamedAxes& axes,
                 const Names& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string from = writer.output_name(i);
    OnnxNode last;
    last.type = "Identity";
    last.name = names[i] + ".result";
    last.inputs = {from};
    last.outputs = {names[i]};
    graph.nodes.push_back(std::move(last));
    auto tensor_in = [&](std::size_t run) -> const Tensor& {
      return traces[run].values[static_cast<std::size_t>(traces[run].outputs[i])].tensor;
    };
    OnnxValue value{.name = names[i], .type = onnx_type(tensor_in(0).dtype()), .has_axes = true, .axes = {}};
    for (int axis = 0; axis < tensor_in(0).rank(); ++axis) {
      Numbers sizes;
      for (std::size_t run = 0; run < traces.size(); ++run) sizes.push_back(tensor_in(run).size(axis));
      value.axes.push_back(output_axis(axes, sizes, fmt::format("{}_axis_{}", names[i], axis)));
    }
    graph.outputs.push_back(std::move(value));
  }
}

// Drops the nodes and arrays that lead to no output. `used`: the names that the graphs around it and its own read.
void drop_unused(OnnxGraph& graph, std::unordered_set<std::string>& used) {
  for (const OnnxValue& output : graph.outputs) used.insert(output.name);
  std::vector<OnnxNode> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::ranges::none_of(node->outputs, [&](const std::string& name) { return used.contains(name); })) continue;
    used.insert(node->inputs.begin(), node->inputs.end());
    for (const OnnxAttribute& attribute : node->attributes)
      if (attribute.graph) drop_unused(*attribute.graph, used);
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(graph.initialisers, [&](const OnnxTensor& array) { return !used.contains(array.name); });
}

Names output_names(const SaveOptions& options, std::size_t count, Location where) {
  if (options.outputs.size() > count)
    fail<Error>(save_name, where, "{} outputs are named, and the function returns {}", options.outputs.size(), count);
  Names names = options.outputs;
  while (names.size() < count) names.push_back(count == 1 ? "output" : fmt::format("output_{}", names.size()));
  return names;
}

}  // namespace

void save_function(const std::string& file, const Function& f, const std::vector<Input>& inputs,
                   const SaveOptions& options, Location where) {
  check_names(inputs, options, where);
  NamedAxes axes(inputs, save_name, where);
  std::vector<Trace> traces;
  for (std::size_t run = 0; run < axes.runs(); ++run) {
    traces.push_back(traced(f, inputs, axes, run, where));
    check_alike(traces[0], traces.back(), axes, run, where);
  }
  OnnxModel model;
  model.ir_version = file_format;
  model.opset = operator_set;
  model.producer = "reel";
  model.producer_version = version.string;
  model.graph.name = "reel";
  Export shared{.root = model.graph, .axes = axes, .inputs = {}};
  for (const Input& input : inputs) shared.inputs.push_back(input.name);
  std::vector<const Trace*> runs;
  for (const Trace& trace : traces) runs.push_back(&trace);
  Writer writer(shared, model.graph, runs);
  add_inputs(model.graph, shared, writer, inputs);
  Names names = output_names(options, traces[0].outputs.size(), where);
  for (const std::string& name : names)
    if (!shared.taken.insert(name).second)
      fail<Error>(save_name, where, "an input and an output have the name '{}'", name);
  writer.write();
  add_outputs(model.graph, writer, traces, axes, names);
  std::unordered_set<std::string> used;
  drop_unused(model.graph, used);

  AtomicFile output(save_name, file, where);
  WrittenModel written = onnx_bytes(model);
  if (!written.problem.empty()) fail<FileError>(save_name, where, "'{}' {}", printable(file), written.problem);
  output.write(std::as_bytes(std::span(written.bytes)));
  output.commit();
}

}  // namespace reel::io::onnx
