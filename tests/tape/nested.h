#pragma once

#include <reel/reel.h>

namespace reel_test {

/// The third derivative of each element of f(x) by the same element of x, from three tapes within each other.
template <class F>
reel::Tensor third_derivative(F f, const reel::Tensor& x) {
  reel::Tape outer;
  outer.watch(x);
  reel::Tensor second;
  {
    reel::Tape middle;
    reel::Tensor first;
    {
      reel::Tape inner;
      first = inner.gradient(sum(f(x)), x);
    }
    second = middle.gradient(sum(first), x);
  }
  return outer.gradient(sum(second), x);
}

}  // namespace reel_test
