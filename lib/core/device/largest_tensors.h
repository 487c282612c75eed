#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include <reel/tensor.h>

namespace reel::detail {

/// The live tensors of this thread that one line has made, as debug::LiveTensors describes them.
struct TensorsOfLine {
  Location made_at;
  std::int64_t count = 0;
  std::size_t bytes = 0, saved_bytes = 0;
  Shape largest_shape;
  DType largest_dtype = DType::f32;
};

/// The wanted live tensors of this thread by the line that made them, most bytes first. `saved`: what tapes keep.
std::vector<TensorsOfLine> tensors_by_line(const std::function<bool(const Body&)>& is_wanted,
                                           const std::unordered_set<const Storage*>& saved);

/// The call sites whose tensors of this thread on a device hold most memory: "3.2 GB at model.cpp:12 (4 tensors), …";
/// empty if there are none.
std::string largest_tensors(Device device);

}  // namespace reel::detail
