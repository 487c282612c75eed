#pragma once

#include <cstdint>

#include "../../../lib/core/target.h"
#include "../../../lib/kernels/sparse.h"

namespace reel::detail::inline REEL_TARGET {

/// The offsets of a pattern with fewer than 2³¹ entries, in 32 bits: (rows + 1).
void narrow_offsets(std::int32_t* out, const RowPattern& pattern);

}  // namespace reel::detail::inline REEL_TARGET
