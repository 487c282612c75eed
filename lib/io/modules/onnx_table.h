#pragma once

#include <cstddef>
#include <cstdint>

#include "../module.h"
#include "../onnx/model.h"

namespace reel::detail {

/// The functions of libreel_onnx.so. They return false after they have written a message, a predicate about the file
/// such as "is cut off".
struct OnnxTable {
  static constexpr ModuleName module = {"reel_onnx", "ONNX files", "libonnx1 and libprotobuf32", 1};

  /// Passes the bytes of a model's file to a sink.
  bool (*write)(const OnnxModel& model, ByteSink sink, ModuleMessage& message) noexcept;
  /// Reads a model from the bytes of its file. Graphs in graphs are read down to a fixed depth.
  bool (*read)(const void* bytes, std::size_t count, OnnxModel& model, ModuleMessage& message) noexcept;
};

}  // namespace reel::detail
