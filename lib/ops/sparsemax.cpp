#include <reel/ops/softmax.h>

#include "registry.h"

namespace reel {

using namespace detail;

std::span<const RegisteredOp> detail::sparsemax_ops() { return {}; }

}  // namespace reel
