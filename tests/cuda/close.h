#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

/// The largest difference between values on a device and on the CPU, divided by the largest finite CPU value or 1. NaN and
/// infinities must be equal.
inline double apart(const reel::Tensor& found, const reel::Tensor& expected) {
  using namespace reel;
  std::vector<double> have = to(to(found, cpu), f64).to_vector<double>(), want = to(expected, f64).to_vector<double>();
  if (have.size() != want.size()) return std::numeric_limits<double>::infinity();
  double largest = 1, worst = 0;
  for (double value : want)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (have[i] == want[i] || (std::isnan(have[i]) && std::isnan(want[i]))) continue;
    double gap = std::abs(have[i] - want[i]) / largest;
    worst = std::max(worst, gap >= 0 ? gap : std::numeric_limits<double>::infinity());
  }
  return worst;
}

/// The largest accepted difference.
inline double allowed(reel::DType dtype) {
  using namespace reel;
  return dtype == f64 ? 1e-10 : dtype == f32 ? 1e-4 : dtype == bf16 ? 0x1p-7 : dtype == f16 ? 0x1p-10 : 0;
}

}  // namespace reel_test
