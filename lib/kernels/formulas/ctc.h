#pragma once

#include <cmath>
#include <limits>

#include "../../core/target.h"

// Probabilities of connectionist temporal classification, as logarithms.

namespace reel::formulas::inline REEL_TARGET {

/// The logarithm of the probability 0.
inline constexpr double impossible = -std::numeric_limits<double>::infinity();

/// log(e^a + e^b + e^c)
REEL_HOST_DEVICE inline double log_of_sum(double a, double b, double c) {
  double most = b < c ? c : b;
  most = a < most ? most : a;  // NaN if a is
  if (most == impossible) return impossible;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

}  // namespace reel::formulas::inline REEL_TARGET
