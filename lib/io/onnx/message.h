#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "model.h"

namespace reel::detail {

/// The bytes of a model's file, a protobuf message. They, and `problem`, a predicate about the file such as "is cut off",
/// are empty unless set.
struct WrittenModel {
  std::string bytes, problem;
};
WrittenModel onnx_bytes(const OnnxModel& model);

/// Reads a model from the bytes of its file. Graphs in graphs are read down to a fixed depth. Returns an empty text, or a
/// predicate about the file such as "is cut off".
std::string read_onnx(std::span<const std::byte> bytes, OnnxModel& model);

}  // namespace reel::detail
