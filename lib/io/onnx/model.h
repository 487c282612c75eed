#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// A model of an ONNX file in plain structs; message.cpp alone includes protobuf's headers.

namespace reel::detail {

/// The element types of ONNX that reel has, by their numbers in the file.
enum class OnnxType : std::int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  bf16 = 16,
};

/// An array with its elements in row-major order.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::none;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};

struct OnnxGraph;

/// A named attribute of a node.
struct OnnxAttribute {
  enum class Kind : std::uint8_t { integer, number, text, integers, numbers, texts, tensor, graph };
  std::string name;
  Kind kind = Kind::integer;
  std::int64_t integer = 0;
  float number = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string> texts;
  std::shared_ptr<OnnxTensor> tensor;
  std::shared_ptr<OnnxGraph> graph;
};

/// One call of an operator; an empty name stands for an input or output that is left out.
struct OnnxNode {
  std::string type, name;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  std::string note;  ///< where the op was called, for readers of the file
};

/// An axis of an input or output: a fixed size, or −1 and a name, or −1 alone for any size.
struct OnnxAxis {
  std::int64_t size = -1;
  std::string name;
};

/// An input or output of a graph.
struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::none;
  bool has_axes = false;
  std::vector<OnnxAxis> axes;
};

/// Nodes in an order in which they can run.
struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initialisers;
  std::vector<OnnxValue> inputs, outputs;
};

/// The contents of a file.
struct OnnxModel {
  std::int64_t ir_version = 0, opset = 0;
  std::string producer, producer_version;
  OnnxGraph graph;
};

}  // namespace reel::detail
