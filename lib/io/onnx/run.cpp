#include "run.h"

#include <algorithm>

#include <fmt/format.h>

#include "../../core/printable.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

constexpr std::size_t longest_list = 64;

}  // namespace

const Tensor* TensorsByName::find(const std::string& name) const {
  for (const TensorsByName* level = this; level; level = level->outer_)
    if (auto found = level->tensors_.find(name); found != level->tensors_.end()) return &found->second;
  return nullptr;
}

NodeCall::NodeCall(const OnnxNode& node, const TensorsByName& tensors, Location where)
    : node_(node), tensors_(tensors), where_(where) {
  for (const std::string& name : node.inputs) {
    const Tensor* found = name.empty() ? nullptr : tensors.find(name);
    if (!found && !name.empty()) refuse(fmt::format("its operand '{}' does not exist", printable(name)));
    inputs_.push_back(found ? *found : Tensor());
  }
}

void NodeCall::refuse(const std::string& reason) const {
  fail<Error>(model_name, where_, "the operator {} of node '{}' cannot run: {}", printable(node_.type),
              printable(node_.name), reason);
}

const Tensor& NodeCall::in(std::size_t input) const {
  if (!has(input)) refuse(fmt::format("operand {} is missing", input));
  return inputs_[input];
}

std::vector<std::int64_t> NodeCall::list(std::size_t input) const {
  const Tensor& numbers = in(input);
  if (numbers.dtype() != i64 || numbers.rank() > 1 || numbers.numel() > static_cast<std::int64_t>(longest_list))
    refuse(fmt::format("operand {} is {}, not a short list of i64", input, describe(numbers)));
  return numbers.to_vector<std::int64_t>();
}

std::int64_t NodeCall::scalar_of(std::size_t input) const {
  std::vector<std::int64_t> numbers = list(input);
  if (numbers.size() != 1) refuse(fmt::format("operand {} has {} numbers instead of 1", input, numbers.size()));
  return numbers[0];
}

const OnnxAttribute* NodeCall::find(std::string_view name) const {
  for (const OnnxAttribute& attribute : node_.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

const OnnxAttribute* NodeCall::find(std::string_view name, OnnxAttribute::Kind kind) const {
  const OnnxAttribute* found = find(name);
  if (found && found->kind != kind) refuse(fmt::format("its attribute {} is of another kind", name));
  return found;
}

std::int64_t NodeCall::integer(std::string_view name, std::int64_t otherwise) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::integer);
  return found ? found->integer : otherwise;
}
double NodeCall::number(std::string_view name, double otherwise) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::number);
  return found ? static_cast<double>(found->number) : otherwise;
}
std::string NodeCall::text(std::string_view name, const char* otherwise) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::text);
  return found ? found->text : otherwise;
}
std::vector<std::int64_t> NodeCall::integers(std::string_view name) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::integers);
  if (found && found->integers.size() > longest_list) refuse(fmt::format("its attribute {} is too long", name));
  return found ? found->integers : std::vector<std::int64_t>();
}
const OnnxGraph& NodeCall::graph(std::string_view name) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::graph);
  if (!found) refuse(fmt::format("it has no graph {}", name));
  return *found->graph;
}
const std::vector<std::string>* NodeCall::texts(std::string_view name) const {
  const OnnxAttribute* found = find(name, OnnxAttribute::Kind::texts);
  return found ? &found->texts : nullptr;
}

int NodeCall::axis(std::int64_t given, int rank) const {
  if (given < -rank || given >= rank) refuse(fmt::format("there is no axis {} of {}", given, rank));
  return static_cast<int>(given < 0 ? given + rank : given);
}

Shape NodeCall::shape(const std::vector<std::int64_t>& sizes) const {
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    refuse(fmt::format("its result would have {} axes", sizes.size()));
  std::int64_t count = 1;
  bool is_empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  for (std::int64_t size : sizes) {
    if (size < 0) refuse(fmt::format("its result would have a size of {}", size));
    if (!is_empty && (__builtin_mul_overflow(count, size, &count) || count > most_result_elements))
      refuse(fmt::format("its result would have more than {} elements", most_result_elements));
  }
  return Shape(std::span(sizes.data(), sizes.size()));
}

Results run_graph(const OnnxGraph& graph, TensorsByName& tensors, Location where) {
  for (const OnnxNode& node : graph.nodes) {
    NodeCall call(node, tensors, where);
    RunNode run = runner_of(node.type);
    if (!run) call.refuse("reel has no such operator");
    Results results = run(call);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= results.size() || !results[i].defined()) call.refuse(fmt::format("it has no result {}", i));
      tensors.set(node.outputs[i], std::move(results[i]));
    }
  }
  Results outputs;
  for (const OnnxValue& output : graph.outputs) {
    const Tensor* found = tensors.find(output.name);
    if (!found) fail<Error>(model_name, where, "the output '{}' is not computed", printable(output.name));
    outputs.push_back(*found);
  }
  return outputs;
}

}  // namespace reel::io::onnx
