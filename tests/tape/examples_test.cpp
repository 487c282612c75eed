#include <reel/reel.h>

#include <utility>
#include <vector>

#include "catch.h"

// The examples in the headers of tapes, derivatives and devices, with the declarations that they use.

using namespace reel;

namespace {

struct Blocks {
  std::vector<nn::Linear> blocks;
};
using Block = nn::Linear;

#include "examples/custom_1.h"

}  // namespace

TEST_CASE("autocast's example gives the parameters gradients in f32") {
  nn::Linear model(4, 3);
  Tensor x = randn({5, 4}), y = tensor(std::vector<std::int64_t>{0, 1, 2, 1, 0});
#include "examples/autocast_1.h"
  CHECK(loss.dtype() == f32);
  CHECK(model.weight.grad().dtype() == f32);
}

TEST_CASE("checkpoint's example computes what its blocks do") {
  Blocks model;
  for (int i = 0; i < 3; ++i) model.blocks.emplace_back(4, 4);
  Tensor x = randn({2, 4}), h = x;
#include "examples/checkpoint_1.h"
  for (const Block& block : model.blocks) x = block(x);
  CHECK(h.to_vector<float>() == x.to_vector<float>());
}

TEST_CASE("custom_gradient's examples have the gradients that they name") {
  Tensor x = tensor({0.25, 1.75});
  Tape tape({.persistent = true});
  tape.watch(x);
  auto gradient = [&](const Tensor& y) { return tape.gradient(sum(y), x).to_vector<double>(); };
  CHECK(gradient(scaled(x, 3)) == std::vector<double>{3, 3});
  CHECK(gradient(rounded(x)) == std::vector<double>{1, 1});
  CHECK(gradient(reversed(x)) == std::vector<double>{-1, -1});
}

namespace without_name {
#include "examples/custom_2.h"
}  // namespace without_name

TEST_CASE("custom_gradient's example without a name reverses the gradient") {
  Tensor x = tensor({2.0});
  Tape tape;
  tape.watch(x);
  CHECK(tape.gradient(sum(without_name::reversed(x)), x).item() == -1);
}

namespace spikes {
const Tensor x = tensor({-3.0, -1.0, 0.5});
#include "examples/custom_3.h"
}  // namespace spikes

TEST_CASE("the example of a custom op is a step with the gradient of a triangle") {
  CHECK(spikes::s.to_vector<double>() == std::vector<double>{0, 0, 1});
  Tape tape;
  tape.watch(spikes::x);
  Tensor y = apply(spikes::Spike{.width = 2}, spikes::x);
  CHECK(tape.gradient(sum(y), spikes::x).to_vector<double>() == std::vector<double>{0, 0.25, 0.375});
}

TEST_CASE("the examples of jacobian have an axis for each of result and inputs") {
  Tensor x = randn({2, 3}), w = randn({3, 4});
#include "examples/derivatives_1.h"
  CHECK(j.shape() == Shape{2, 4, 2, 3});
  CHECK(jx.to_vector<float>() == j.to_vector<float>());
  CHECK(jw.shape() == Shape{2, 4, 3, 4});
}

TEST_CASE("the example of a CUDA graph trains, where there is a GPU") {
  if (!cuda::is_available()) return reel_test::skip("there is no GPU: " + cuda::why_not());
  DeviceGuard guard(cuda::device());
  nn::Linear model(4, 3);
  optim::Adam adam(model.parameters());
  Tensor x = randn({5, 4}), y = to(tensor(std::vector<std::int64_t>{0, 1, 2, 1, 0}), cuda::device());
  std::vector<std::pair<Tensor, Tensor>> data(4, {x, y});
#include "examples/cuda_1.h"
  CHECK(step.is_recorded());
}

TEST_CASE("the examples of differential equations have the gradients of their field, by the steps and by the adjoint") {
  nn::Linear field(2, 2);
  std::vector<NamedTensor> weights = field.named_parameters();
  Tensor y0 = ones({3, 2});
  std::vector<double> times{0, 0.5, 1};
  auto gradient_of = [&](auto solve) {
    Tape tape;
    return tape.gradient(sum(solve()), field.parameters()[0]);
  };
  Tensor by_steps = gradient_of([&] {
#include "examples/ode_1.h"
    return y;
  });
  Tensor by_adjoint = gradient_of([&] {
#include "examples/ode_2.h"
    return y;
  });
  CHECK(max(abs(by_steps - by_adjoint)).item() < 1e-3);
}
