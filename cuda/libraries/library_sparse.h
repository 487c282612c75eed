#pragma once

#include "../../lib/core/target.h"
#include "../../lib/kernels/sparse.h"

namespace reel::detail::inline REEL_TARGET {

/// out = A dense, as SparseKernels::product, by the library. Returns false, without doing anything, if it does not
/// support the operands.
bool library_sparse_product(const View& out, const View& values, const View& dense, const RowPattern& pattern);

}  // namespace reel::detail::inline REEL_TARGET
