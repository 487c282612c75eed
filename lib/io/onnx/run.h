#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <reel/tensor.h>

#include "../../core/fail.h"
#include "model.h"

namespace reel::io::onnx {

constexpr const char* model_name = "io::onnx::Model";
/// The most elements of the results of operators that enlarge their operand.
constexpr std::int64_t most_result_elements = std::int64_t{1} << 28;

/// The tensors of a graph by their names, with those of the graph around it.
class TensorsByName {
 public:
  explicit TensorsByName(const TensorsByName* outer = nullptr) : outer_(outer) {}
  void set(const std::string& name, Tensor tensor) { tensors_.insert_or_assign(name, std::move(tensor)); }
  /// Null if there is none.
  const Tensor* find(const std::string& name) const;

 private:
  const TensorsByName* outer_;
  std::unordered_map<std::string, Tensor> tensors_;
};

/// One node that runs: its operands and attributes.
class NodeCall {
 public:
  NodeCall(const detail::OnnxNode& node, const TensorsByName& tensors, Location where);

  const detail::OnnxNode& node() const { return node_; }
  const TensorsByName& tensors() const { return tensors_; }
  Location where() const { return where_; }
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return node_.outputs.size(); }
  bool has(std::size_t input) const { return input < inputs_.size() && inputs_[input].defined(); }
  /// Throws: Error if the operand is missing.
  const Tensor& in(std::size_t input) const;
  /// Operand 0, with the line of the caller.
  Arg first() const { return Arg(in(0), where_); }
  /// The elements of an operand (n) or () of i64. Throws: Error for another one, or more than 64 elements.
  std::vector<std::int64_t> list(std::size_t input) const;
  /// The only element of an operand. Throws: Error if there are several.
  std::int64_t scalar_of(std::size_t input) const;

  bool has_attribute(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, const char* otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  const detail::OnnxGraph& graph(std::string_view name) const;
  const std::vector<std::string>* texts(std::string_view name) const;
  /// An axis of a tensor of this rank, from 0. Throws: Error if there is none.
  int axis(std::int64_t given, int rank) const;
  /// A shape. Throws: Error for negative sizes, more than 8, or more than `most_result_elements` elements.
  Shape shape(const std::vector<std::int64_t>& sizes) const;
  /// Throws: Error.
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  const detail::OnnxAttribute* find(std::string_view name) const;
  const detail::OnnxAttribute* find(std::string_view name, detail::OnnxAttribute::Kind kind) const;

  const detail::OnnxNode& node_;
  const TensorsByName& tensors_;
  Location where_;
  std::vector<Tensor> inputs_;
};

using Results = std::vector<Tensor>;
using RunNode = Results (*)(const NodeCall& call);
/// How a node of this type runs; null if that is not supported.
RunNode runner_of(std::string_view type);
/// Runs the nodes of a graph; its inputs and initialisers are in `tensors`. Returns its outputs.
Results run_graph(const detail::OnnxGraph& graph, TensorsByName& tensors, Location where);

}  // namespace reel::io::onnx
