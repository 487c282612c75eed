#include <reel/ops/unfold.h>

#include "registry.h"

namespace reel {

using namespace detail;

std::span<const RegisteredOp> detail::unfold_ops() { return {}; }

}  // namespace reel
