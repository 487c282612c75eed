#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <reel/tensor.h>

namespace reel::debug {

/// Options of `print`.
struct PrintOptions {
  /// The number of calls from one line that print, on each thread; later ones print nothing. Default −1: all.
  std::int64_t first_n = -1;
  /// The number of elements that are shown, in row-major order; −1: all. Default 8.
  std::int64_t summarize = 8;
  /// Receives what is printed, without the final newline. Default: stderr.
  std::function<void(const std::string& line)> sink = {};
};

/// Prints a tensor's name, shape, dtype, statistics and first elements, with the active notes and the caller's line, and
/// returns the tensor, so that it can be put into an expression: `y = matmul(debug::print(x, "x"), w);`. Gradients flow
/// through it as if it were not there. Throws: Error if x is undefined.
Tensor print(const Tensor& x, std::string_view name, const PrintOptions& options = {},
             Location where = Location::here());

}  // namespace reel::debug
