#include <reel/reel.h>
#include <reel/train.h>

#include <vector>

#include "catch.h"

// The examples in the headers of the optimisers, with the declarations that they use. CustomOptimiser's example is in
// custom_test.cpp.

using namespace reel;

namespace {

// Three points on a line, and a layer that can fit them.
struct Line {
  nn::Linear model{1, 1};
  Tensor x = reshape(arange(3.0f), {3, 1}), y = 2 * x - 1;
  std::vector<train::Batch> batches{{x, y}, {x, y}};
};

}  // namespace

TEST_CASE("the example of a step moves the parameters and clears their gradients") {
  auto [model, x, y, batches] = Line();
  optim::SGD optimiser(model.parameters(), {.learning_rate = 0.1});
  double before = model.bias.item();
  Tape tape;
  Tensor loss = mean(square(model(x) - y));
#include "examples/optim_optimiser_1.h"
  CHECK(model.bias.item() != before);
  CHECK_FALSE(model.bias.grad().defined());
}

TEST_CASE("LBFGS's example finds the line through three points") {
  Line line;
  nn::Linear& model = line.model;
  const Tensor &x = line.x, &y = line.y;
  optim::LBFGS lbfgs(model.parameters());
  Tape tape;
#include "examples/optim_lbfgs_1.h"
  CHECK(model.weight.item() == Approx(2).epsilon(1e-3));
  CHECK(model.bias.item() == Approx(-1).epsilon(1e-3));
}

TEST_CASE("the example of a loss scaler makes a step in f16") {
  nn::Linear model(4, 3);
  Tensor x = randn({5, 4}), y = tensor(std::vector<std::int64_t>{0, 1, 2, 1, 0});
  optim::Adam adam(model.parameters());
  optim::LossScaler scaler;
  std::vector<float> before = model.weight.to_vector<float>();
#include "examples/optim_loss_scaler_1.h"
  CHECK(model.weight.to_vector<float>() != before);
}

TEST_CASE("the example of a moving average puts it into the model and takes it out again") {
  Line line;
  nn::Linear& model = line.model;
  const std::vector<train::Batch>& batches = line.batches;
  optim::SGD sgd(model.parameters(), {.learning_rate = 0.1});
  std::vector<double> evaluated;
  auto train_step = [&](const train::Batch& batch) {
    sgd.step([&] {
      Tape tape;
      Tensor loss = mean(square(model(batch.x) - batch.y));
      tape.backward(loss);
      return loss.item();
    });
  };
  auto evaluate = [&](nn::Linear& model) { evaluated.push_back(model.bias.item()); };
#include "examples/optim_moving_average_1.h"
  evaluate(model);
  CHECK(evaluated[0] != evaluated[1]);
}

TEST_CASE("the example of a schedule divides the rate by a root") {
  auto [model, x, y, batches] = Line();
  optim::Adam adam(model.parameters(), {.learning_rate = 1});
#include "examples/optim_schedule_1.h"
  for (int step = 0; step < 3; ++step) scheduler.step();
  CHECK(adam.learning_rate() == 0.5);
}

TEST_CASE("the example of a scheduler warms up") {
  auto [model, x, y, batches] = Line();
  optim::Adam adam(model.parameters(), {.learning_rate = 1});
  std::vector<double> rates;
  auto train_step = [&](const train::Batch&) { rates.push_back(adam.learning_rate()); };
#include "examples/optim_scheduler_1.h"
  CHECK(rates[1] > rates[0]);
  CHECK(rates[1] < 1);
}
