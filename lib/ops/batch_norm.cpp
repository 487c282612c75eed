#include <reel/ops/normalise.h>

#include "registry.h"

namespace reel {

using namespace detail;

std::span<const RegisteredOp> detail::batch_norm_ops() { return {}; }

}  // namespace reel
