#pragma once

#include <reel/tensor.h>

namespace reel::detail {

/// The cumulative product along an axis, from its end if `backwards`.
Tensor running_product(const Tensor& x, int axis, bool backwards, Location where);

/// x shifted by one element along an axis, in the direction of the scan; the first element is `edge`.
Tensor before(const Tensor& x, int axis, bool backwards, double edge);

}  // namespace reel::detail
