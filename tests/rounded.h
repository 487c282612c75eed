#pragma once

#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace reel_test {

/// Rounds to nearest even, to as many significant bits as the dtype, bf16 or f16, has, by way of the integer that counts
/// its steps.
inline double rounded(double x, reel::DType dtype) {
  if (x == 0) return x;
  int bits = dtype == reel::bf16 ? 8 : 11, smallest = dtype == reel::bf16 ? -126 : -14;
  int step = std::max(std::ilogb(x), smallest) - (bits - 1);
  double y = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
  return dtype == reel::f16 && std::abs(y) >= 65520 ? std::copysign(INFINITY, x) : y;
}

/// The weight with its elements rounded to a half, in f64.
inline reel::Tensor rounded(const reel::Tensor& weight, reel::DType dtype) {
  std::vector<double> values = reel::to(weight, reel::f64).to_vector<double>();
  for (double& value : values) value = rounded(value, dtype);
  return reel::tensor(values, weight.shape());
}

}  // namespace reel_test
