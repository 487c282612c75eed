#pragma once

#include <reel/detail/view.h>

#include "../../core/context.h"

namespace reel::detail {

/// Counts the multiplications of a product whose elements are sums of `depth` terms. Counted by ops, so that all
/// backends do.
inline void count_products(const View& out, std::int64_t depth) {
  context().multiplications += static_cast<double>(out.numel) * static_cast<double>(depth);
}

}  // namespace reel::detail
