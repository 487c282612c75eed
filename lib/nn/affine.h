#pragma once

#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>

namespace reel::nn {

/// x W + b of x (…, I), as one op if x has rows; x W if b is undefined.
inline Tensor affine(const Tensor& x, const Tensor& W, const Tensor& b) {
  if (!b.defined()) return matmul(x, W);
  if (x.rank() == 2) return addmm(b, x, W);
  if (x.rank() < 2 || x.numel() == 0) return matmul(x, W) + b;
  Shape shape = x.shape();
  shape[x.rank() - 1] = W.size(1);
  return reshape(addmm(b, reshape(x, {-1, W.size(0)}), W), shape);
}

}  // namespace reel::nn
