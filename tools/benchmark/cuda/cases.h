#pragma once

#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

namespace reel_bench {

/// One thing that is measured, here and by pytorch.py under the same name.
struct CudaCase {
  /// What gpu-check sets goals for: matmul, conv, lstm, chain; others have none.
  std::string family;
  std::string name;
  /// How many ops of a user one run is: the time is told for each.
  int operations;
  /// Multiplications and additions of a run; 0 where they tell nothing.
  double work;
  /// Makes the operands, and returns what is timed: it leaves its work on the device's stream.
  std::function<std::function<void()>()> prepare;
  /// Whether f32 products may round their operands to TF32.
  bool tf32 = false;
};

std::vector<CudaCase> matmul_cases(reel::Device device);
std::vector<CudaCase> convolution_cases(reel::Device device);
std::vector<CudaCase> recurrent_cases(reel::Device device);
std::vector<CudaCase> chain_cases(reel::Device device);
std::vector<CudaCase> layer_cases(reel::Device device);
std::vector<CudaCase> graph_cases(reel::Device device);

/// Times of a run in µs: the median of several repetitions, and their quartiles.
struct CudaTimes {
  double low, median, high;
};

/// Every repetition ends when the device is idle.
CudaTimes time_of(const std::function<void()>& run, const std::function<void()>& synchronise);

}  // namespace reel_bench
