#include <reel/reel.h>

#include "catch.h"

// The examples in the headers of the distributions.

using namespace reel;

TEST_CASE("the example of normal distributions draws samples and has divergences") {
#include "examples/distributions_normal_1.h"
  CHECK(z.shape() == Shape{8, 2});
  CHECK(divergence.to_vector<float>() == std::vector<float>(16, 0.0f));
}

TEST_CASE("the example of a Bernoulli distribution has a loss") {
#include "examples/distributions_bernoulli_1.h"
  CHECK(loss.item() == Approx(3 * std::log(2)));
}

TEST_CASE("the example of categorical distributions draws actions") {
#include "examples/distributions_categorical_1.h"
  CHECK(action.shape() == Shape{8});
  CHECK(action.dtype() == DType::i64);
  for (float value : log_probability.to_vector<float>()) CHECK(value == Approx(-std::log(4)));
}
