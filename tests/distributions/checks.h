#pragma once

#include <reel/reel.h>

#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "plain.h"

namespace reel_test {

inline void check_close(const reel::Tensor& result, const Row& expected, double epsilon = 1e-10) {
  Row values = result.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(expected[i]))
      CHECK(values[i] == expected[i]);
    else
      CHECK(values[i] == Approx(expected[i]).epsilon(epsilon).margin(1e-12));
  }
}

/// A function whose gradients are checked by finite differences, to first and second order.
struct Derivative {
  std::string name;
  reel::debug::Differentiable f;
  std::vector<reel::Tensor> inputs;
};

inline void check_derivatives(const std::vector<Derivative>& cases) {
  for (const Derivative& c : cases) {
    reel::debug::GradcheckReport first = reel::debug::gradcheck(c.f, c.inputs),
                                 second = reel::debug::gradgradcheck(c.f, c.inputs);
    INFO(c.name << ": " << first.text << "; " << second.text);
    CHECK(first);
    CHECK(second);
  }
}

}  // namespace reel_test
