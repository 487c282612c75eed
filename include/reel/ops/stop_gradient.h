#pragma once

#include <reel/tensor.h>

namespace reel {

/// Returns a tensor that shares the elements of x but is not tracked: no gradient flows back through it.
Tensor stop_gradient(const Arg& x);

}  // namespace reel
