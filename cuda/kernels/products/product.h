#pragma once

#include <reel/detail/view.h>

#include "../../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// out = a b, or out += a b, for the last two axes; the leading ones broadcast. The matrices of `out` are contiguous. The
/// kernel, and so each bit of the result, is determined by dtype, shapes and strides.
void multiply(const View& out, const View& a, const View& b, bool adds);

/// out = c + a b of matrices; c has out's shape, and any strides.
void add_to_product(const View& out, const View& c, const View& a, const View& b);

}  // namespace reel::detail::inline REEL_TARGET
