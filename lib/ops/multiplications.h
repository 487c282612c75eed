#pragma once

#include <reel/detail/view.h>

#include "../core/context.h"

namespace reel::detail {

/// Counts the multiplications of a product each of whose elements is a sum of so many. Ops count, so that all backends do.
inline void count_products(const View& out, std::int64_t depth) {
  context().multiplications += static_cast<double>(out.numel) * static_cast<double>(depth);
}

}  // namespace reel::detail
