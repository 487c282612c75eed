#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::debug {

/// The living tensors that one line has made.
struct LiveTensors {
  Location made_at;
  std::int64_t count = 0;  ///< views among them
  /// Of the elements. What several tensors share is counted once, where one that shows all of it was made.
  std::size_t bytes = 0;
  /// How many of these the open tapes of this thread keep for gradients; parameters, which stay anyway, are left out.
  std::size_t saved_bytes = 0;
  Shape largest_shape;
  DType largest_dtype = DType::f32;
};

/// The living tensors of this thread, and those that an ended thread has left to it, by the line that made them; most
/// bytes first. It costs nothing until it is called, and then about a second for 10⁶ tensors.
std::vector<LiveTensors> live_tensors();

/// A table: MB, MB kept by tapes, number of tensors, the largest, `file:line`; and the sums.
std::string to_string(const std::vector<LiveTensors>& lines);

}  // namespace reel::debug
