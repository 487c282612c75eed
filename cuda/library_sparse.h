#pragma once

#include "../lib/core/kernels/sparse.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// out = A dense, as SparseKernels::product, by the library. False, with nothing done, for what it does not take.
bool library_sparse_product(const View& out, const View& values, const View& dense, const RowPattern& pattern);

}  // namespace REEL_TARGET
}  // namespace reel::detail
