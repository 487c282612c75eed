#pragma once

#include <string>
#include <utility>
#include <vector>

#include <reel/io/onnx.h>
#include <reel/reel.h>
#include <reel/testing.h>

#include "catch.h"
#include "folder.h"
#include "io/onnx/message.h"
#include "io/onnx/model_tensor.h"
#include "io/onnx/writer.h"

// Nodes in the forms that other programs write and reel does not: with attributes left out, or set to what reel never sets.

namespace reel_test {

using namespace reel;

/// The results of a node whose operands are constants; an undefined operand is left out.
inline std::vector<Tensor> results_of(const std::string& type, const std::vector<Tensor>& operands,
                                      const std::vector<detail::OnnxAttribute>& attributes, std::size_t count) {
  detail::OnnxModel model{.ir_version = 8, .opset = 17, .producer = "test", .producer_version = "", .graph = {}};
  detail::OnnxNode node{.type = type, .name = "n", .inputs = {}, .outputs = {}, .attributes = attributes, .note = ""};
  for (const Tensor& operand : operands) {
    node.inputs.push_back(operand.defined() ? "x" + std::to_string(node.inputs.size()) : "");
    if (operand.defined()) model.graph.initialisers.push_back(io::onnx::onnx_tensor(node.inputs.back(), operand));
  }
  for (std::size_t i = 0; i < count; ++i) {
    node.outputs.push_back("y" + std::to_string(i));
    model.graph.outputs.push_back(
        {.name = node.outputs[i], .type = detail::OnnxType::f32, .has_axes = false, .axes = {}});
  }
  model.graph.nodes = {node};
  detail::WrittenModel written = detail::onnx_bytes(model);
  REQUIRE(written.problem.empty());
  Folder folder;
  reel_test::put_bytes(folder.file("model.onnx"), written.bytes);
  return io::onnx::load(folder.file("model.onnx"))(std::vector<Tensor>());
}

/// Tensors of f32 and i64 numbers, and attributes.
inline Tensor f(const NestedNumbers& numbers) { return tensor(numbers, {.dtype = f32}); }
inline Tensor n(const NestedNumbers& numbers) { return tensor(numbers, {.dtype = i64}); }
inline Tensor no_numbers() { return zeros({0}, {.dtype = i64}); }
inline detail::OnnxAttribute is(const char* name, std::int64_t value) { return io::onnx::attribute(name, value); }
inline detail::OnnxAttribute list(const char* name, std::vector<std::int64_t> values) {
  return io::onnx::attribute(name, std::move(values));
}

struct Case {
  int line;
  const char* type;
  std::vector<Tensor> operands;
  std::vector<detail::OnnxAttribute> attributes;
  std::vector<Tensor> results;
};

inline void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    CAPTURE(one.line, one.type);
    std::vector<Tensor> found = results_of(one.type, one.operands, one.attributes, one.results.size());
    REQUIRE(found.size() == one.results.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(testing::all_close(found[i], one.results[i]));
  }
}

struct Refusal {
  int line;
  const char* type;
  std::vector<Tensor> operands;
  std::vector<detail::OnnxAttribute> attributes;
  const char* sentence;
};

inline void check(const std::vector<Refusal>& refusals) {
  for (const Refusal& one : refusals) {
    CAPTURE(one.line, one.type);
    CHECK_THAT(error_of<Error>([&] { results_of(one.type, one.operands, one.attributes, 1); }), contains(one.sentence));
  }
}

}  // namespace reel_test
