#pragma once

#include <reel/detail/view.h>

#include "../../lib/core/target.h"

namespace reel::detail::inline REEL_TARGET {

/// out = or += a b for the last two axes, by a library of the device's vendor. Returns false, without doing anything,
/// if it has no kernel for the operands. The matrices of `out` are contiguous and not empty; a and b have contiguous rows
/// or columns: see matrix_layout.h.
bool multiply_by_library(const View& out, const View& a, const View& b, bool adds);
/// out = a b + bias of single matrices, with one number of the contiguous `bias` for each column. Returns false,
/// without doing anything, if the library has no kernel for the operands.
bool multiply_by_library(const View& out, const View& a, const View& b, const void* bias);

}  // namespace reel::detail::inline REEL_TARGET
