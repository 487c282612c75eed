#include <limits>

#include <reel/reel.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

// One step on the mean square of w, whose gradient is w at two elements.
struct Problem {
  Tensor w = tensor({3.0, -4.0}).requires_grad();
  optim::SGD sgd{{w}, {.learning_rate = 0.5}};

  void differentiate(const optim::LossScaler& scaler, double factor = 1) {
    sgd.zero_grad();
    Tape tape;
    tape.backward(scaler.scale(mean(square(w)) * factor));
  }
};

}  // namespace

TEST_CASE("a scaled loss gives scaled gradients, and a step as without") {
  Problem problem;
  optim::LossScaler scaler({.scale = 1024});
  problem.differentiate(scaler);
  CHECK(problem.w.grad().to_vector<double>() == std::vector<double>{3 * 1024.0, -4 * 1024.0});
  CHECK(scaler.step(problem.sgd));
  CHECK(problem.w.to_vector<double>() == std::vector<double>{1.5, -2});
  CHECK(problem.w.grad().to_vector<double>() == std::vector<double>{3, -4});
  scaler.update();
  CHECK(scaler.current_scale() == 1024);
  CHECK(scaler.growth_progress() == 1);
}

TEST_CASE("gradients may be looked at and clipped between unscaling and the step") {
  Problem problem;
  optim::LossScaler scaler;
  problem.differentiate(scaler);
  scaler.unscale(problem.sgd);
  CHECK(optim::clip_grad_norm(problem.sgd.parameters(), 1) == Approx(5));
  CHECK(scaler.step(problem.sgd));
  CHECK(problem.w.to_vector<double>()[0] == Approx(2.7));
}

TEST_CASE("a step whose gradients are not finite is left out, and the scale lowered") {
  double bad = GENERATE(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  Problem problem;
  optim::LossScaler scaler({.scale = 1024, .backoff = 0.25});
  problem.differentiate(scaler, bad);
  CHECK_FALSE(scaler.step(problem.sgd));
  CHECK(problem.w.to_vector<double>() == std::vector<double>{3, -4});
  scaler.update();
  CHECK(scaler.current_scale() == 256);
  problem.differentiate(scaler);
  CHECK(scaler.step(problem.sgd));
}

TEST_CASE("the scale grows after as many finite steps in a row as are asked for") {
  Problem problem;
  optim::LossScaler scaler({.scale = 8, .growth = 4, .backoff = 0.5, .growth_interval = 3});
  std::vector<double> scales;
  for (bool good : {true, true, false, true, true, true, true, true, true}) {
    problem.differentiate(scaler, good ? 1 : std::numeric_limits<double>::infinity());
    scaler.step(problem.sgd);
    scaler.update();
    scales.push_back(scaler.current_scale());
  }
  CHECK(scales == std::vector<double>{8, 8, 4, 4, 4, 16, 16, 16, 64});
}

TEST_CASE("an optimiser with finite gradients makes its step beside one without, and the scale is lowered") {
  Problem good, bad;
  optim::LossScaler scaler({.scale = 8});
  good.differentiate(scaler);
  bad.differentiate(scaler, std::numeric_limits<double>::infinity());
  CHECK(scaler.step(good.sgd));
  CHECK_FALSE(scaler.step(bad.sgd));
  scaler.update();
  CHECK(scaler.current_scale() == 4);
}

TEST_CASE("gradients by rows are unscaled, and looked at, as others") {
  nn::Embedding embedding(4, 2, {.row_gradient = true});
  fill_(embedding.table, 1);
  optim::SGD sgd(embedding.parameters(), {.learning_rate = 0.5});
  optim::LossScaler scaler({.scale = 16});
  auto step = [&](double factor) {
    sgd.zero_grad();
    Tape tape;
    tape.backward(scaler.scale(sum(embedding(tensor<std::int64_t>({1, 2}))) * factor));
    bool made = scaler.step(sgd);
    scaler.update();
    return made;
  };
  CHECK(step(1));
  CHECK(embedding.table.to_vector<float>() == std::vector<float>{1, 1, 0.5, 0.5, 0.5, 0.5, 1, 1});
  CHECK_FALSE(step(std::numeric_limits<double>::infinity()));
  CHECK(embedding.table.to_vector<float>() == std::vector<float>{1, 1, 0.5, 0.5, 0.5, 0.5, 1, 1});
}

TEST_CASE("a net learns within an autocast scope of f16 what would vanish without a scale") {
  // The gradient of the loss by each output is 10⁻⁸, below what f16 can hold.
  auto learnt = [](double scale) {
    Tensor w = zeros({4, 1}).requires_grad(), x = ones({1, 4});
    optim::SGD sgd({w}, {.learning_rate = 1e7});
    optim::LossScaler scaler({.scale = scale});
    Tape tape;
    Tensor loss;
    {
      auto scope = autocast(f16);
      loss = sum(to(matmul(x, w), f32)) * 1e-8;
    }
    tape.backward(scaler.scale(loss));
    scaler.step(sgd);
    return w.to_vector<float>()[0];
  };
  CHECK(learnt(1) == 0);
  CHECK(learnt(65536) == Approx(-0.1).epsilon(1e-3));
}

TEST_CASE("a loss of halves is scaled in f32") {
  optim::LossScaler scaler;
  Tensor scaled = scaler.scale(ones({}, {.dtype = f16}));
  CHECK(scaled.dtype() == f32);
  CHECK(scaled.item() == 65536);
  CHECK(scaler.scale(ones({}, {.dtype = f64})).dtype() == f64);
}

TEST_CASE("a loss scaler goes on where another one was, also one with a longer interval") {
  for (std::int64_t progress : {2, 7}) {
    optim::LossScaler scaler({.scale = 8, .growth_interval = 3});
    scaler.restore(32, progress);
    Problem problem;
    problem.differentiate(scaler);
    scaler.step(problem.sgd);
    scaler.update();
    CHECK(scaler.current_scale() == 64);
  }
}

TEST_CASE("a loss scaler's steps and updates take turns, and its options are in range") {
  Problem problem;
  optim::LossScaler scaler;
  auto said = [](auto f) { return error_of<Error>(f); };
  CHECK_THAT(said([&] { scaler.update(); }),
             contains("LossScaler: there was no step") && contains("loss_scaler_test.cpp:"));
  problem.differentiate(scaler);
  scaler.unscale(problem.sgd);
  CHECK_THAT(said([&] { scaler.unscale(problem.sgd); }), contains("have been unscaled since the last update"));
  scaler.step(problem.sgd);
  CHECK_THAT(said([&] { scaler.step(problem.sgd); }), contains("there was a step since the last update"));
  CHECK_THAT(said([&] { scaler.scale(ones({}, {.dtype = i64})); }), contains("LossScaler"));
  CHECK_THAT(said([&] { scaler.restore(0, 0); }), contains("the scale 0"));
  CHECK_THAT(said([&] { scaler.restore(1, -1); }), contains("progress -1"));
  CHECK_THAT(said([] { optim::LossScaler({.scale = -1}); }), contains("the scale -1"));
  CHECK_THAT(said([] { optim::LossScaler({.growth = 1}); }), contains("the growth 1"));
  CHECK_THAT(said([] { optim::LossScaler({.backoff = 1}); }), contains("the backoff 1"));
  CHECK_THAT(said([] { optim::LossScaler({.growth_interval = 0}); }), contains("the growth interval 0"));
}

TEST_CASE("a scale does not fall so far that gradients cannot be divided by it, and a step needs finite quotients") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Problem problem;
  optim::LossScaler scaler({.scale = 1, .backoff = 1e-30});
  for (int i = 0; i < 20; ++i) {
    problem.differentiate(scaler, infinity);
    CHECK_FALSE(scaler.step(problem.sgd));
    scaler.update();
  }
  CHECK(scaler.current_scale() == 0x1p-126);
  problem.differentiate(scaler);
  CHECK(scaler.step(problem.sgd));
  CHECK(problem.w.to_vector<double>() == std::vector<double>{1.5, -2});
  scaler.update();
  Tensor w = ones({1}).requires_grad();
  optim::SGD sgd({w});
  w.set_grad(full({1}, 1000));
  CHECK_FALSE(scaler.step(sgd));  // 1000 · 2¹²⁶ is beyond f32
  CHECK(w.item() == 1);
  CHECK_THAT(error_of<Error>([] { optim::LossScaler({.scale = 1e-300}); }), contains("the scale 1e-300"));
}
