#pragma once

#include <cstdint>

#include <reel/tensor.h>

#include "../io/image_codec.h"

namespace reel::logging {

/// A picture of a tensor (C, H, W), or of several (N, C, H, W) in a grid that is as wide as high, `gap` pixels apart.
/// Elements are u8, bool, or floating in [0, 1], beyond which they are cut off; NaN is 0.
/// Throws: Error if the tensor is undefined; ShapeError unless it has such a shape, C is 1 to 4 and no size is 0;
/// DTypeError for other dtypes.
detail::Pixels picture_of(const char* function, const Tensor& x, std::int64_t gap, Location where);

}  // namespace reel::logging
