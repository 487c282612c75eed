#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <cmath>

#include "catch.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("Adam's first step is the learning rate in the direction of the gradient's sign") {
  Tensor w = tensor({1.0, 1.0, 1.0}).requires_grad();
  optim::Adam adam({w}, {.learning_rate = 0.5});
  w.set_grad(tensor({100.0, -1e-3, 0.0}));
  adam.step();
  std::vector<double> values = w.to_vector<double>();
  CHECK(values[0] == Approx(0.5));
  CHECK(values[1] == Approx(1.5).epsilon(1e-4));
  CHECK(values[2] == 1.0);
}

TEST_CASE("every element of a large parameter makes the same step") {
  // More than a thread's share, and no multiple of a vector.
  constexpr std::int64_t count = 200003;
  auto stepped = [&](auto make) {
    Tensor w = ones({count}).requires_grad();
    auto optimiser = make(std::vector<Tensor>{w});
    for (int step = 0; step < 2; ++step) {
      w.set_grad(full({count}, 0.5));
      optimiser.step();
    }
    return std::pair(min(w).item(), max(w).item());
  };
  // w − 0.1 (0.5 + (0.5 + 0.9 · 0.5)) with momentum.
  auto [least, most] = stepped([](auto w) { return optim::SGD(w, {.learning_rate = 0.1, .momentum = 0.9}); });
  CHECK(least == most);
  CHECK(least == Approx(1 - 0.1 * 1.45));
  std::tie(least, most) = stepped([](auto w) { return optim::SGD(w, {.learning_rate = 0.1}); });
  CHECK(least == most);
  CHECK(least == Approx(0.9));
  std::tie(least, most) = stepped([](auto w) { return optim::Adam(w, {.learning_rate = 0.1}); });
  CHECK(least == most);
  CHECK(least == Approx(0.8));
}

TEST_CASE("parameters without a gradient stay as they are, and their steps are not counted") {
  Tensor used = ones({2}).requires_grad(), late = ones({2}).requires_grad();
  optim::Adam adam({used, late}, {.learning_rate = 0.1});
  used.set_grad(ones({2}));
  for (int i = 0; i < 5; ++i) adam.step();
  CHECK(late.to_vector<float>() == std::vector<float>{1, 1});
  late.set_grad(ones({2}));
  adam.step();
  CHECK(late.to_vector<float>()[0] == Approx(0.9));
}

TEST_CASE("an optimiser minimises a square, with a new learning rate from the next step on") {
  Tensor w = tensor({3.0f, -2.0f}).requires_grad();
  optim::SGD sgd({w}, {.learning_rate = 0});
  auto step = [&] {
    Tape tape;
    tape.backward(sum(square(w)));
    sgd.step();
    sgd.zero_grad();
  };
  step();
  CHECK(w.to_vector<float>() == std::vector<float>{3, -2});
  sgd.set_learning_rate(0.5);
  CHECK(sgd.learning_rate() == 0.5);
  step();
  CHECK(w.to_vector<float>() == std::vector<float>{0, 0});
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("a step with a gradient that is a strided view reads it in its order") {
  Tensor w = zeros({2, 2}).requires_grad();
  optim::SGD sgd({w}, {.learning_rate = 1});
  w.set_grad(transpose(tensor({{1.f, 2.f}, {3.f, 4.f}})));
  sgd.step();
  CHECK(w.to_vector<float>() == std::vector<float>{-1, -3, -2, -4});
}

TEST_CASE("a step between the forward and the backward is noticed") {
  Tensor w = ones({2}).requires_grad();
  optim::SGD sgd({w}, {.learning_rate = 1});
  w.set_grad(ones({2}));
  Tape tape;
  Tensor y = sum(w * w);
  int line = __LINE__ + 1;
  sgd.step();
  CHECK_THAT(error_of<TapeError>([&] { tape.backward(y); }),
             contains("overwritten at " + to_string(Location{__FILE__, line})));
}

TEST_CASE("what an optimiser cannot train is refused with a reason") {
  Tensor w = ones({2}).requires_grad();
  auto text = [](const std::vector<Tensor>& list) { return error_of<Error>([&] { optim::Adam adam(list); }); };
  CHECK_THAT(text({}), contains("Adam: there is no parameter to train"));
  CHECK_THAT(text({Tensor()}), contains("Adam: parameter 0 is an undefined tensor"));
  CHECK_THAT(text({w, ones({3})}), contains("tensor 1, (3,) f32, is no parameter; call requires_grad()"));
  CHECK_THAT(text({w, w}), contains("parameter 1, (2,) f32, is listed twice"));
  CHECK_THAT(text({ones({2}, {.dtype = bf16}).requires_grad()}), contains("(2,) bf16, is neither f32 nor f64"));
  CHECK_THAT(text({transpose(ones({2, 3})).requires_grad()}), contains("is not contiguous"));
}

TEST_CASE("options out of range are refused with the caller's line") {
  Tensor w = ones({2}).requires_grad();
  int line = __LINE__ + 1;
  std::string text = error_of<Error>([&] { optim::SGD sgd({w}, {.learning_rate = -1}); });
  CHECK(text == "SGD: the learning rate -1 is not 0 or more; at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<Error>([&] { optim::SGD sgd({w}, {.learning_rate = NAN}); }), contains("rate nan"));
  CHECK_THAT(error_of<Error>([&] { optim::SGD sgd({w}, {.momentum = 1}); }), contains("outside [0, 1)"));
  CHECK_THAT(error_of<Error>([&] { optim::SGD sgd({w}, {.nesterov = true}); }), contains("nesterov needs a momentum"));
  CHECK_THAT(error_of<Error>([&] { optim::SGD sgd({w}, {.weight_decay = -1}); }), contains("weight decay -1"));
  CHECK_THAT(error_of<Error>([&] { optim::Adam adam({w}, {.beta1 = 1}); }),
             contains("the beta1 1 lies outside [0, 1)"));
  CHECK_THAT(error_of<Error>([&] { optim::Adam adam({w}, {.epsilon = -1}); }), contains("epsilon -1"));
}
