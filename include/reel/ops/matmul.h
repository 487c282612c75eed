#pragma once

#include <reel/tensor.h>

namespace reel {

/// Matrix product, as NumPy's `@`: (…, M, K) and (…, K, N) → (…, M, N). Leading axes broadcast; a vector on the left is a
/// row, on the right a column, and its axis is dropped from the result. Transposed operands are read in place.
/// f32 and f64 are multiplied as such, bf16 and f16 with f32 sums, integers with wrap-around.
/// Throws: ShapeError where inner sizes differ, or for a tensor of rank 0.
Tensor matmul(const Arg& a, const Arg& b);

}  // namespace reel
