#pragma once

#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>

namespace reel::optim {

/// The inner product of two tensors of one shape.
inline double dot(const Tensor& a, const Tensor& b) { return sum(a * b).item(); }
/// The largest magnitude of an element; NaN if there is one. At least one element.
inline double largest(const Tensor& x) { return max(abs(x)).item(); }

}  // namespace reel::optim
