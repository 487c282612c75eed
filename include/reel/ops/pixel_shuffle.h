#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// Arranges the channels of squares of factor² as pixels: x: (…, C factor², H, W) → (…, C, H factor, W factor), with
/// y_c,(h factor + i),(w factor + j) = x_(c factor² + i factor + j),h,w.
/// Throws: ShapeError unless x has rank 3 or more, the factor is at least 1 and its square divides the channels.
/// Source: Shi et al., Real-time single image and video super-resolution (CVPR 2016); PyTorch's pixel_shuffle.
Tensor pixel_shuffle(const Arg& x, std::int64_t factor);
/// Arranges squares of factor² pixels as channels, the inverse of `pixel_shuffle`: x: (…, C, H factor, W factor) → (…, C
/// factor², H, W).
/// Throws: ShapeError unless x has rank 3 or more, the factor is at least 1 and divides the last two sizes.
/// Source: PyTorch's pixel_unshuffle.
Tensor pixel_unshuffle(const Arg& x, std::int64_t factor);

}  // namespace reel
