#pragma once

#include <cstdint>

#include <reel/detail/view.h>

#include "../../../lib/core/target.h"

// Kernels of lib/kernels/sparse.h.

namespace reel::detail::inline REEL_TARGET {

void order_rows(const View& numbers, const View& distinct, const View& indices, std::int64_t row_count);
void segment_sum_rows(const View& rows, const View& sums, const View& values, const View& indices, const View& numbers,
                      std::int64_t row_count);

}  // namespace reel::detail::inline REEL_TARGET
