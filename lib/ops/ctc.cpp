#include <reel/ops/loss.h>

#include "registry.h"

namespace reel {

using namespace detail;

std::span<const RegisteredOp> detail::ctc_ops() { return {}; }

}  // namespace reel
