#include <unordered_set>

#include <fmt/format.h>
#include <reel/io/onnx.h>
#include <reel/io/safetensors.h>

#include "../../core/fail.h"
#include "../../core/printable.h"
#include "../file.h"
#include "message.h"
#include "model_tensor.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

struct Program {
  OnnxModel model;
  TensorsByName constants;
  std::vector<OnnxValue> inputs;  // without initialisers, which older files list, too
  std::vector<std::string> input_names, output_names;
};

namespace {

constexpr const char* load_name = "io::onnx::load";
constexpr std::int64_t least_set = 13, last_set = 17;

class Check {
 public:
  Check(const std::string& file, Location where) : file_(file), where_(where) {}

  [[noreturn]] void refuse(const std::string& predicate) const {
    fail<FileError>(load_name, where_, "'{}' {}", printable(file_), predicate);
  }

  // Each name is defined once, before it is used, and each operator is known.
  // `known`: the names of the graphs around it.
  void graph(const OnnxGraph& graph, std::unordered_set<std::string_view>& known) const {
    std::vector<std::string_view> own;
    auto define = [&](const std::string& name) {
      if (name.empty() || !known.insert(name).second)
        refuse(fmt::format("defines the name '{}' twice, or has an empty one", printable(name)));
      own.push_back(name);
    };
    std::unordered_set<std::string> initialised;
    for (const OnnxTensor& tensor : graph.initialisers) {
      define(tensor.name);
      initialised.insert(tensor.name);
    }
    for (const OnnxValue& input : graph.inputs)
      if (!initialised.contains(input.name)) define(input.name);
    for (const OnnxNode& node : graph.nodes) {
      if (!runner_of(node.type))
        refuse(fmt::format("has the operator '{}', which reel does not run", printable(node.type)));
      for (const std::string& input : node.inputs)
        if (!input.empty() && !known.contains(input))
          refuse(fmt::format("uses '{}' in node '{}' before it is computed", printable(input), printable(node.name)));
      for (const OnnxAttribute& attribute : node.attributes)
        if (attribute.graph) {
          if (!attribute.graph->initialisers.empty())
            refuse("has initialisers in the body of a loop, which reel does not read");
          this->graph(*attribute.graph, known);
        }
      for (const std::string& output : node.outputs)
        if (!output.empty()) define(output);
    }
    if (graph.outputs.empty()) refuse("has a graph without outputs");
    for (const OnnxValue& output : graph.outputs)
      if (!known.contains(output.name)) refuse(fmt::format("does not compute its output '{}'", printable(output.name)));
    for (std::string_view name : own) known.erase(name);
  }

 private:
  const std::string& file_;
  Location where_;
};

void check_input(const OnnxValue& wanted, const Tensor& given, Location where) {
  if (!given.defined()) fail<Error>(model_name, where, "the input '{}' is undefined", printable(wanted.name));
  if (onnx_type(given.dtype()) != wanted.type)
    fail<DTypeError>(model_name, where, "the input '{}' is {}, which has not the dtype of the file",
                     printable(wanted.name), describe(given));
  if (!wanted.has_axes) return;
  bool fits = static_cast<std::size_t>(given.rank()) == wanted.axes.size();
  for (int axis = 0; fits && axis < given.rank(); ++axis) {
    const OnnxAxis& own = wanted.axes[static_cast<std::size_t>(axis)];
    fits = own.size < 0 || own.size == given.size(axis);
  }
  if (fits) return;
  std::string shape;
  for (const OnnxAxis& axis : wanted.axes) {
    std::string name = axis.name.empty() ? "any" : printable(axis.name);
    shape += (shape.empty() ? "" : ", ") + (axis.size >= 0 ? std::to_string(axis.size) : name);
  }
  fail<ShapeError>(model_name, where, "the input '{}' is {}, not ({})", printable(wanted.name), describe(given), shape);
}

}  // namespace

Model load(const std::string& file, Location where) {
  Reader reader(load_name, file, where);
  Check check(file, where);
  if (reader.size() >= std::uint64_t{1} << 31) check.refuse("has 2 GiB or more, which no ONNX file has");
  std::vector<std::byte> bytes(static_cast<std::size_t>(reader.size()));
  reader.read(0, bytes);
  auto program = std::make_shared<Program>();
  if (std::string problem = read_onnx(bytes, program->model); !problem.empty()) check.refuse(printable(problem));
  OnnxModel& model = program->model;
  if (model.opset < least_set || model.opset > last_set)
    check.refuse(fmt::format("has operator set {}; reel runs {} to {}", model.opset, least_set, last_set));
  std::unordered_set<std::string_view> known;
  check.graph(model.graph, known);
  std::unordered_set<std::string> initialised;
  for (OnnxTensor& tensor : model.graph.initialisers) {
    if (tensor.dims.size() > static_cast<std::size_t>(max_rank))
      check.refuse(fmt::format("has an array of {} axes: a tensor has at most {}", tensor.dims.size(), max_rank));
    program->constants.set(tensor.name, tensor_from(tensor, load_name, where));
    initialised.insert(tensor.name);
    tensor.bytes = {};
  }
  for (const OnnxValue& input : model.graph.inputs) {
    if (initialised.contains(input.name)) continue;
    program->inputs.push_back(input);
    program->input_names.push_back(input.name);
  }
  for (const OnnxValue& output : model.graph.outputs) program->output_names.push_back(output.name);
  return Model(std::move(program));
}

const std::vector<std::string>& Model::inputs() const { return program_->input_names; }
const std::vector<std::string>& Model::outputs() const { return program_->output_names; }

std::vector<Tensor> Model::operator()(std::span<const Tensor> x, Location where) const {
  if (x.size() != program_->inputs.size())
    fail<Error>(model_name, where, "the model has {} inputs, and {} are given", program_->inputs.size(), x.size());
  TensorsByName tensors(&program_->constants);
  for (std::size_t i = 0; i < x.size(); ++i) {
    check_input(program_->inputs[i], x[i], where);
    tensors.set(program_->inputs[i].name, x[i]);
  }
  return run_graph(program_->model.graph, tensors, where);
}

Tensor Model::operator()(const Tensor& x, Location where) const {
  if (program_->inputs.size() != 1 || program_->output_names.size() != 1)
    fail<Error>(model_name, where, "the model has {} inputs and {} outputs: pass a list", program_->inputs.size(),
                program_->output_names.size());
  return (*this)(std::span(&x, 1), where).front();
}

}  // namespace reel::io::onnx
