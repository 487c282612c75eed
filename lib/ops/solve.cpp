#include <reel/ops/linear_algebra.h>

#include "registry.h"

namespace reel {

using namespace detail;

std::span<const RegisteredOp> detail::solve_ops() { return {}; }

}  // namespace reel
