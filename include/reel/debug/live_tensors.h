#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <reel/tensor.h>

namespace reel::debug {

/// The live tensors that one line has made.
struct LiveTensors {
  Location made_at;        ///< the line
  std::int64_t count = 0;  ///< their number, views included
  /// Bytes of their elements. Storage that several tensors share is counted once, at the line of a tensor that covers
  /// all of it.
  std::size_t bytes = 0;
  /// How many of these bytes the open tapes of this thread keep for gradients; parameters, which live anyway, are not
  /// included.
  std::size_t saved_bytes = 0;
  Shape largest_shape;               ///< the shape of the largest of them
  DType largest_dtype = DType::f32;  ///< the dtype of the largest of them
};

/// The live tensors of this thread, and those that an ended thread has left to it, by the line that made them; most
/// bytes first. Costs nothing until it is called, and then about a second for 10⁶ tensors. A library whose code has made
/// one of them must not have been closed (dlclose), because the names of its files are read from its memory.
std::vector<LiveTensors> live_tensors();

/// A table of live tensors: MB, MB kept by tapes, number of tensors, the largest, `file:line`; and the sums.
std::string to_string(const std::vector<LiveTensors>& lines);

}  // namespace reel::debug
