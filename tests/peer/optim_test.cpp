#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "catch.h"

// Ten steps of each optimiser that libtorch has, with equal gradients, in two groups of parameters.

namespace {

using namespace reel;

constexpr int step_count = 10;

at::Tensor theirs_of(const Tensor& x) {
  std::vector<double> values = to(x, f64).to_vector<double>();
  Shape shape = x.shape();
  return at::tensor(values, x.dtype() == f64 ? at::kDouble : at::kFloat)
      .reshape(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

std::vector<double> doubles(const at::Tensor& x) {
  at::Tensor wide = x.detach().to(at::kDouble).contiguous();
  return {wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel()};
}

// Parameters with equal values in both libraries.
struct Parameters {
  std::vector<Tensor> ours;
  std::vector<at::Tensor> theirs;

  Parameters(std::initializer_list<Shape> shapes, DType dtype) {
    for (const Shape& shape : shapes) {
      Tensor values = randn(shape, {.dtype = dtype});
      ours.push_back(copy(values).requires_grad());
      theirs.push_back(theirs_of(values).requires_grad_(true));
    }
  }
  void draw_gradients() {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      Tensor gradient = randn(ours[i].shape(), {.dtype = ours[i].dtype()});
      ours[i].set_grad(gradient);
      theirs[i].mutable_grad() = theirs_of(gradient);
    }
  }
  // In f32 each step rounds some ten times, and rounds what earlier steps have rounded: 10 · 10 · 2⁻²⁴ of the largest
  // number, 6e-6; in f64 as many 2⁻⁵³.
  void check_equal() const {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      std::vector<double> found = to(ours[i], f64).to_vector<double>(), expected = doubles(theirs[i]);
      double tolerance = ours[i].dtype() == f64 ? 1.2e-14 : 6e-6;
      for (std::size_t k = 0; k < found.size(); ++k) {
        CAPTURE(i, k, found[k], expected[k]);
        CHECK(std::abs(found[k] - expected[k]) <= tolerance * std::max(1.0, std::abs(expected[k])));
      }
    }
  }
};

// The options that libtorch's constructor sets. In PyTorch 2.15 a group takes from the optimiser each option that the group has
// as the constructor sets it, even where the caller has set it, too; from these it takes what it has.
template <class TheirOptions>
TheirOptions constructed() {
  if constexpr (std::is_default_constructible_v<TheirOptions>)
    return {};
  else
    return TheirOptions(1e-3);
}

// `Theirs` takes groups; each has options of its own, in `options` and `their_options`.
template <class Ours, class Theirs, class Options, class TheirOptions>
void compare(const Options (&options)[2], const TheirOptions (&their_options)[2]) {
  for (DType dtype : {f32, f64}) {
    manual_seed(5);
    Parameters first({{3, 17}, {200}}, dtype), second({{33}, {}}, dtype);
    Ours ours(first.ours, options[0]);
    ours.add_group(second.ours, options[1]);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(first.theirs, std::make_unique<TheirOptions>(their_options[0]));
    groups.emplace_back(second.theirs, std::make_unique<TheirOptions>(their_options[1]));
    Theirs theirs(groups, constructed<TheirOptions>());
    for (int t = 0; t < step_count; ++t) {
      for (Parameters* one : {&first, &second}) one->draw_gradients();
      ours.step();
      theirs.step();
    }
    first.check_equal();
    second.check_equal();
  }
}

}  // namespace

TEST_CASE("ten steps of SGD equal libtorch's") {
  using Their = torch::optim::SGDOptions;
  compare<optim::SGD, torch::optim::SGD>(
      {optim::SGDOptions{.learning_rate = 0.1}, {.learning_rate = 0.02, .weight_decay = 0.1}},
      {Their(0.1), Their(0.02).weight_decay(0.1)});
  compare<optim::SGD, torch::optim::SGD>(
      {optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.3},
       {.learning_rate = 0.02, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true}},
      {Their(0.1).momentum(0.9).dampening(0.3), Their(0.02).momentum(0.8).weight_decay(0.1).nesterov(true)});
}

TEST_CASE("ten steps of Adam equal libtorch's") {
  using Their = torch::optim::AdamOptions;
  compare<optim::Adam, torch::optim::Adam>(
      {optim::AdamOptions{.learning_rate = 0.1}, {.beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1}},
      {Their(0.1), Their(1e-3).betas({0.5, 0.9}).eps(1e-3).weight_decay(0.1)});
  compare<optim::Adam, torch::optim::Adam>(
      {optim::AdamOptions{.learning_rate = 0.1, .beta2 = 0.5, .amsgrad = true}, {.amsgrad = true}},
      {Their(0.1).betas({0.9, 0.5}).amsgrad(true), Their(1e-3).amsgrad(true)});
}

TEST_CASE("ten steps of AdamW equal libtorch's") {
  using Their = torch::optim::AdamWOptions;
  compare<optim::AdamW, torch::optim::AdamW>(
      {optim::AdamWOptions{.learning_rate = 0.1}, {.weight_decay = 0.3, .amsgrad = true}},
      {Their(0.1), Their(1e-3).weight_decay(0.3).amsgrad(true)});
}

TEST_CASE("ten steps of Adagrad equal libtorch's") {
  using Their = torch::optim::AdagradOptions;
  compare<optim::Adagrad, torch::optim::Adagrad>(
      {optim::AdagradOptions{}, {.learning_rate = 0.5, .rate_decay = 0.1, .weight_decay = 0.1, .epsilon = 1e-3}},
      {Their(1e-2), Their(0.5).lr_decay(0.1).weight_decay(0.1).eps(1e-3)});
}

TEST_CASE("ten steps of RMSprop equal libtorch's") {
  using Their = torch::optim::RMSpropOptions;
  compare<optim::RMSprop, torch::optim::RMSprop>(
      {optim::RMSpropOptions{}, {.alpha = 0.9, .epsilon = 1e-2, .weight_decay = 0.1, .momentum = 0.9}},
      {Their(1e-2), Their(1e-2).alpha(0.9).eps(1e-2).weight_decay(0.1).momentum(0.9)});
  // Centred, with an epsilon that keeps what rounding leaves of a variance near 0 from counting.
  compare<optim::RMSprop, torch::optim::RMSprop>(
      {optim::RMSpropOptions{.epsilon = 0.1, .centred = true}, {.epsilon = 0.1, .momentum = 0.5, .centred = true}},
      {Their(1e-2).eps(0.1).centered(true), Their(1e-2).eps(0.1).momentum(0.5).centered(true)});
}

TEST_CASE("ten steps of LBFGS equal libtorch's, with and without its line search") {
  for (bool line_search : {true, false}) {
    CAPTURE(line_search);
    manual_seed(7);
    Parameters w({{4}, {2, 3}}, f64);
    Tensor scales = arange(1, 5, 1, {.dtype = f64});
    at::Tensor their_scales = theirs_of(scales);
    // Four iterations a step; valleys as Rosenbrock's.
    optim::LBFGS ours(
        w.ours,
        {.learning_rate = line_search ? 1 : 0.05, .max_iterations = 4, .history_size = 5, .line_search = line_search});
    auto options = torch::optim::LBFGSOptions(line_search ? 1 : 0.05).max_iter(4).history_size(5);
    if (line_search) options.line_search_fn("strong_wolfe");
    torch::optim::LBFGS theirs(w.theirs, options);
    for (int t = 0; t < step_count; ++t) {
      double loss = ours.step([&] {
        Tape tape;
        const Tensor &a = w.ours[0], &b = w.ours[1];
        Tensor loss = sum(scales * square(a - 1)) + sum(square(square(b) - slice(b, 1, 0, 1))) + sum(exp(b * 0.5));
        tape.backward(loss);
        return loss.item();
      });
      at::Tensor their_loss = theirs.step([&] {
        theirs.zero_grad();
        const at::Tensor &a = w.theirs[0], &b = w.theirs[1];
        at::Tensor loss = at::sum(their_scales * at::square(a - 1)) +
                          at::sum(at::square(at::square(b) - b.slice(1, 0, 1))) + at::sum(at::exp(b * 0.5));
        loss.backward();
        return loss;
      });
      // Curvature divides by differences of gradients, which magnifies roundings.
      CHECK(loss == Approx(their_loss.item<double>()).epsilon(1e-9));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<double> found = w.ours[i].to_vector<double>(), expected = doubles(w.theirs[i]);
      for (std::size_t k = 0; k < found.size(); ++k) CHECK(std::abs(found[k] - expected[k]) <= 1e-6);
    }
  }
}

TEST_CASE("step_decay sets libtorch's rates") {
  manual_seed(8);
  Parameters w({{2}}, f32);
  optim::SGD ours(w.ours, {.learning_rate = 0.7});
  optim::Scheduler schedule(ours, optim::step_decay({.every = 3, .factor = 0.3}));
  torch::optim::SGD theirs(w.theirs, torch::optim::SGDOptions(0.7));
  torch::optim::StepLR their_schedule(theirs, 3, 0.3);
  their_schedule.step();  // libtorch's counts one call more than PyTorch's documentation says
  for (int t = 0; t < step_count; ++t) {
    CHECK(ours.learning_rate() == Approx(theirs.param_groups()[0].options().get_lr()).epsilon(1e-12));
    schedule.step();
    their_schedule.step();
  }
}
