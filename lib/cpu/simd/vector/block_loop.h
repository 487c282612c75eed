#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../../core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// Applies a formula to `count` contiguous elements. `out` may be one of the inputs.
using BlockLoop = void (*)(void* out, const void* const* inputs, std::int64_t count);

struct BlockLoopOptions {
  /// Halves are converted to f32 before the loop, and the loop's f32 results are rounded to an `out` of halves.
  bool widens = true;
  /// The number of elements from which several threads share the work; from four times as many, sleeping threads are
  /// woken.
  std::int64_t parallel_from = 1 << 16;
  /// The loops for rows along which the first or the second of two inputs is a single element; null: it is repeated in a
  /// buffer.
  BlockLoop repeated[2] = {};
};

/// Runs a loop over views of any layout, the inputs broadcast to `out`. Operands that cannot be accessed in place go
/// through small buffers, so every element passes one loop whatever its position and stride.
template <int input_count>
void run_loop(const View& out, const View* const (&inputs)[input_count], BlockLoop loop, BlockLoopOptions options = {});

extern template void run_loop<1>(const View&, const View* const (&)[1], BlockLoop, BlockLoopOptions);
extern template void run_loop<2>(const View&, const View* const (&)[2], BlockLoop, BlockLoopOptions);
extern template void run_loop<3>(const View&, const View* const (&)[3], BlockLoop, BlockLoopOptions);
extern template void run_loop<4>(const View&, const View* const (&)[4], BlockLoop, BlockLoopOptions);
extern template void run_loop<5>(const View&, const View* const (&)[5], BlockLoop, BlockLoopOptions);

}  // namespace reel::detail::inline REEL_TARGET
