#pragma once

#include <reel/tensor.h>

namespace reel::detail {

/// cumprod, from the end if `backwards`.
Tensor running_product(const Tensor& x, int axis, bool backwards, Location where);

/// In each place what x has in the one before, seen in the direction of a scan; `edge` in the first.
Tensor before(const Tensor& x, int axis, bool backwards, double edge);

}  // namespace reel::detail
