#pragma once

#include <reel/reel.h>

#include <functional>
#include <string>
#include <vector>

namespace reel_bench {

/// One benchmark, which pytorch.py has under this name, too.
struct CudaCase {
  /// The family for which gpu-check has a goal: matmul, conv, lstm, chain; others have none.
  std::string family;
  std::string name;
  /// The number of ops in a run; the printed time is per op.
  int operations;
  /// Multiplications and additions of a run; 0: not reported.
  double work;
  /// Makes the operands and returns the function to time, which queues its work on the device's stream.
  std::function<std::function<void()>()> prepare;
  /// True if f32 products may round their operands to TF32.
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
