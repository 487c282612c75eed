#pragma once

#include "../device/device.h"

namespace reel::detail::inline REEL_TARGET {

/// Begins a range of this thread in the timeline of NVIDIA's profilers, within the one that began last; `name` is copied.
/// Returns the number of ranges around it; below 0 where no profiler runs.
/// Source: NVIDIA Tools Extension (NVTX) 3, nvtxRangePushA.
int begin_range(const char* name) noexcept;
/// Ends the range of this thread that began last.
/// Source: NVIDIA Tools Extension (NVTX) 3, nvtxRangePop.
void end_range() noexcept;

}  // namespace reel::detail::inline REEL_TARGET
