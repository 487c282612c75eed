#include <reel/reel.h>
#include <reel/train.h>

#include <csignal>
#include <string>
#include <vector>

#include "catch.h"
#include "io/folder.h"

// The examples in the headers of training loops, with the declarations that they use.

using namespace reel;

TEST_CASE("the example of the best weights restores those of the best epoch") {
  nn::Linear model(1, 1);
  bool loaded = true;
  int dev = 0, epoch_of_weights = 0;
  auto train_epoch = [&](nn::Linear& model) {
    NoRecord pause;
    fill_(model.bias, ++epoch_of_weights);
  };
  auto accuracy = [](const nn::Linear& model, int) { return -std::abs(model.bias.item() - 4); };
#include "examples/train_best_weights_1.h"
  CHECK(epoch_of_weights == 10);
  CHECK(model.bias.item() == 4);
}

TEST_CASE("the example of a checkpoint saves a run that a second one resumes") {
  reel_test::Folder folder;
  std::filesystem::path before = std::filesystem::current_path();
  auto run = [&] {
    nn::Linear model(1, 1);
    optim::Adam adam(model.parameters());
    optim::Scheduler schedule(adam, optim::step_decay({.every = 100}));
    int steps_here = 0;
    auto train_step = [&] { ++steps_here; };
#include "examples/train_checkpoint_1.h"
    return steps_here;
  };
  std::filesystem::current_path(folder.file(""));
  CHECK(run() == 1000);
  CHECK(run() == 0);
  std::filesystem::current_path(before);
}

TEST_CASE("the examples of fit train a classifier") {
  manual_seed(1);
  Tensor x = randn({64, 2}), y = to(x(ellipsis, 0) > 0, i64);
  nn::Linear net(2, 2);
  optim::Adam adam(net.parameters(), {.learning_rate = 0.1});
#include "examples/train_fit_1.h"
  CHECK(train::accuracy(net(x), y) > 0.8);
  std::vector<float> before = net.weight.to_vector<float>();
#include "examples/train_fit_2.h"
  CHECK(net.weight.to_vector<float>() != before);
}

TEST_CASE("the example of fit with a step function trains on pairs") {
  struct Pair {
    Tensor premise, hypothesis, label;
  };
  nn::Bilinear model(2, 2, 2);
  optim::Adam adam(model.parameters());
  std::vector<Pair> loader{{randn({4, 2}), randn({4, 2}), tensor({0, 1, 1, 0})}};
  std::vector<float> before = model.weight.to_vector<float>();
#include "examples/train_fit_3.h"
  CHECK(model.weight.to_vector<float>() != before);
}

TEST_CASE("the example of an interruption saves the weights and exits with the signal's status") {
  reel_test::Folder folder;
  nn::Linear model(1, 1);
  std::string path = folder.file();
  std::vector<train::Batch> batches(3);
  int steps = 0;
  auto train_step = [&](const train::Batch&) {
    ++steps;
    std::raise(SIGTERM);
  };
  auto train = [&] {
#include "examples/train_interruption_1.h"
    return 0;
  };
  CHECK(train() == 128 + SIGTERM);
  CHECK(steps == 1);
  CHECK(io::load(path).tensors.size() == 2);
}
