#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// A formula over `count` elements that lie in order. `out` may be one of the inputs.
using BlockLoop = void (*)(void* out, const void* const* inputs, std::int64_t count);

struct BlockLoopOptions {
  /// The loop takes bf16 and f16 as f32, and gives f32 where `out` is one of the two.
  bool widens = true;
  /// From this many elements on, several threads share the work; from four times as many, sleeping ones are woken for it.
  std::int64_t parallel_from = 1 << 16;
};

/// Runs a loop over views of any layout, the inputs broadcast to `out`. What cannot be read or written in place goes
/// through small buffers, so every element passes the same loop whatever its place and stride.
template <int input_count>
void run_loop(const View& out, const View* const (&inputs)[input_count], BlockLoop loop, BlockLoopOptions options = {});

extern template void run_loop<1>(const View&, const View* const (&)[1], BlockLoop, BlockLoopOptions);
extern template void run_loop<2>(const View&, const View* const (&)[2], BlockLoop, BlockLoopOptions);
extern template void run_loop<3>(const View&, const View* const (&)[3], BlockLoop, BlockLoopOptions);
extern template void run_loop<4>(const View&, const View* const (&)[4], BlockLoop, BlockLoopOptions);

}  // namespace REEL_TARGET
}  // namespace reel::detail
