#pragma once

#include <reel/reel.h>

#include <vector>

#include "ops/numbers.h"

namespace reel_test {

using Values = std::vector<double>;

/// The gradient of f's sum at x.
template <class F>
Values gradient_of(const reel::Tensor& x, F f) {
  reel::Tape tape;
  tape.watch(x);
  return values_of(tape.gradient(sum(f(x)), x));
}

}  // namespace reel_test
