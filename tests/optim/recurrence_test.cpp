#include <reel/ops.h>
#include <reel/optim.h>

#include <cmath>
#include <functional>

#include "catch.h"

// Every optimiser against its equations for one element in f64.

using namespace reel;

namespace {

const std::vector<double> start = {1.0, -2.0, 0.5};
constexpr int steps = 20;

// The gradient in step t; that of the last element is sometimes 0.
std::vector<double> gradient_at(int t) { return {std::sin(1.0 * t), 0.3 - 0.1 * t, t % 3 ? 100.0 / (t * t) : 0}; }

// Updates one element with a gradient in step t.
struct Weight {
  double w;
  double a = 0, b = 0, c = 0;  // state variables
};
using Advance = std::function<void(Weight& x, double gradient, int t)>;

template <class T, class Optimiser, class Options>
void check_dtype(const Options& options, const Advance& advance) {
  Tensor w = tensor(std::vector<T>(start.begin(), start.end())).requires_grad();
  Optimiser optimiser({w}, options);
  std::vector<Weight> expected;
  for (double value : start) expected.push_back({value});
  for (int t = 1; t <= steps; ++t) {
    std::vector<double> gradient = gradient_at(t);
    w.set_grad(tensor(std::vector<T>(gradient.begin(), gradient.end())));
    optimiser.step();
    std::vector<T> values = w.to_vector<T>();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      advance(expected[i], gradient[i], t);
      CAPTURE(t, i);
      // In f32 a rounding of 2⁻²⁴ in each of some ten operations of 20 steps.
      double most = sizeof(T) == 4 ? 2e-5 : 1e-12;
      CHECK(std::abs(static_cast<double>(values[i]) - expected[i].w) <= most * std::max(1.0, std::abs(expected[i].w)));
    }
  }
}

template <class Optimiser, class Options>
void check(const Options& options, const Advance& advance) {
  check_dtype<float, Optimiser>(options, advance);
  check_dtype<double, Optimiser>(options, advance);
}

}  // namespace

TEST_CASE("SGD follows its recurrence, plain, with momentum, Nesterov's, dampening and weight decay") {
  using Options = optim::SGDOptions;
  for (const Options& o : {Options{.learning_rate = 0.1}, Options{.learning_rate = 0.1, .weight_decay = 0.01},
                           Options{.learning_rate = 0.1, .momentum = 0.9},
                           Options{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.4},
                           Options{.learning_rate = 0.05, .momentum = 0.8, .weight_decay = 0.02, .nesterov = true}})
    check<optim::SGD>(o, [o](Weight& x, double d, int t) {
      double g = d + o.weight_decay * x.w;
      x.a = t == 1 ? g : o.momentum * x.a + (1 - o.dampening) * g;
      x.w -= o.learning_rate * (o.nesterov ? g + o.momentum * x.a : x.a);
    });
}

TEST_CASE("Adam follows its recurrence with corrected moments, weight decay in the gradient, and amsgrad") {
  using Options = optim::AdamOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 1e-3},
                           Options{.learning_rate = 0.01, .weight_decay = 0.1},
                           Options{.learning_rate = 0.1, .beta2 = 0.5, .amsgrad = true}})
    check<optim::Adam>(o, [o](Weight& x, double d, int t) {
      double g = d + o.weight_decay * x.w;
      x.a = o.beta1 * x.a + (1 - o.beta1) * g;
      x.b = o.beta2 * x.b + (1 - o.beta2) * g * g;
      x.c = std::max(x.c, x.b);
      double square = (o.amsgrad ? x.c : x.b) / (1 - std::pow(o.beta2, t));
      x.w -= o.learning_rate * x.a / (1 - std::pow(o.beta1, t)) / (std::sqrt(square) + o.epsilon);
    });
}

TEST_CASE("AdamW shrinks the weights apart from Adam's step") {
  using Options = optim::AdamWOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.1, .weight_decay = 0.2, .amsgrad = true}})
    check<optim::AdamW>(o, [o](Weight& x, double g, int t) {
      x.a = o.beta1 * x.a + (1 - o.beta1) * g;
      x.b = o.beta2 * x.b + (1 - o.beta2) * g * g;
      x.c = std::max(x.c, x.b);
      double square = (o.amsgrad ? x.c : x.b) / (1 - std::pow(o.beta2, t));
      x.w = x.w * (1 - o.learning_rate * o.weight_decay) -
            o.learning_rate * x.a / (1 - std::pow(o.beta1, t)) / (std::sqrt(square) + o.epsilon);
    });
}

TEST_CASE("NAdam looks ahead along a momentum that grows") {
  using Options = optim::NAdamOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.1, .weight_decay = 0.1, .momentum_decay = 0.1}})
    check<optim::NAdam>(o, [o](Weight& x, double d, int t) {
      double g = d + o.weight_decay * x.w;
      auto momentum = [&](int step) { return o.beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay)); };
      double product = 1;
      for (int step = 1; step <= t; ++step) product *= momentum(step);
      x.a = o.beta1 * x.a + (1 - o.beta1) * g;
      x.b = o.beta2 * x.b + (1 - o.beta2) * g * g;
      double root = std::sqrt(x.b / (1 - std::pow(o.beta2, t))) + o.epsilon, next = momentum(t + 1);
      x.w -= o.learning_rate * ((1 - momentum(t)) / (1 - product) * g + next / (1 - product * next) * x.a) / root;
    });
}

TEST_CASE("RAdam divides by the root once it can be relied upon") {
  using Options = optim::RAdamOptions;
  for (const Options& o : {Options{.learning_rate = 0.01},
                           Options{.learning_rate = 0.1, .beta2 = 0.9, .weight_decay = 0.1}, Options{.beta2 = 0.5}})
    check<optim::RAdam>(o, [o](Weight& x, double d, int t) {
      double g = d + o.weight_decay * x.w;
      x.a = o.beta1 * x.a + (1 - o.beta1) * g;
      x.b = o.beta2 * x.b + (1 - o.beta2) * g * g;
      double mean = x.a / (1 - std::pow(o.beta1, t)), corrected = 1 - std::pow(o.beta2, t);
      double most = 2 / (1 - o.beta2) - 1, length = most - 2 * t * std::pow(o.beta2, t) / corrected;
      double factor = 1;
      if (length > 5)
        factor = std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) *
                 std::sqrt(corrected) / (std::sqrt(x.b) + o.epsilon);
      x.w -= o.learning_rate * mean * factor;
    });
}

TEST_CASE("Adagrad divides by the root of all squares, at a rate that may fall") {
  using Options = optim::AdagradOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.5, .rate_decay = 0.1, .weight_decay = 0.1},
                           Options{.initial_sum = 0.5, .epsilon = 0.1}})
    check<optim::Adagrad>(o, [o](Weight& x, double d, int t) {
      if (t == 1) x.a = o.initial_sum;
      double g = d + o.weight_decay * x.w;
      x.a += g * g;
      x.w -= o.learning_rate / (1 + (t - 1) * o.rate_decay) * g / (std::sqrt(x.a) + o.epsilon);
    });
}

TEST_CASE("Adadelta's steps have the units of the weights") {
  using Options = optim::AdadeltaOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.5, .rho = 0.5, .epsilon = 1e-3, .weight_decay = 0.1}})
    check<optim::Adadelta>(o, [o](Weight& x, double d, int) {
      double g = d + o.weight_decay * x.w;
      x.a = o.rho * x.a + (1 - o.rho) * g * g;
      double step = std::sqrt(x.b + o.epsilon) / std::sqrt(x.a + o.epsilon) * g;
      x.b = o.rho * x.b + (1 - o.rho) * step * step;
      x.w -= o.learning_rate * step;
    });
}

TEST_CASE("RMSprop follows its recurrence, centred or not, with and without momentum") {
  using Options = optim::RMSpropOptions;
  for (bool centred : {false, true})
    for (double momentum : {0.0, 0.9}) {
      Options o{.alpha = 0.9, .epsilon = 1e-3, .weight_decay = 0.1, .momentum = momentum, .centred = centred};
      check<optim::RMSprop>(o, [o](Weight& x, double d, int) {
        double g = d + o.weight_decay * x.w;
        x.a = o.alpha * x.a + (1 - o.alpha) * g * g;
        x.b = o.centred ? o.alpha * x.b + (1 - o.alpha) * g : 0;
        x.c = o.momentum * x.c + g / (std::sqrt(x.a - x.b * x.b) + o.epsilon);
        x.w -= o.learning_rate * x.c;
      });
    }
}

TEST_CASE("Adamax divides by the largest gradient") {
  using Options = optim::AdamaxOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.1, .beta2 = 0.5, .epsilon = 0.1, .weight_decay = 0.1}})
    check<optim::Adamax>(o, [o](Weight& x, double d, int t) {
      double g = d + o.weight_decay * x.w;
      x.a = o.beta1 * x.a + (1 - o.beta1) * g;
      x.b = std::max(o.beta2 * x.b, std::abs(g) + o.epsilon);
      x.w -= o.learning_rate / (1 - std::pow(o.beta1, t)) * x.a / x.b;
    });
}

TEST_CASE("Lion goes by the sign alone") {
  using Options = optim::LionOptions;
  for (const Options& o :
       {Options{.learning_rate = 0.01}, Options{.learning_rate = 0.1, .beta1 = 0.5, .weight_decay = 0.1}})
    check<optim::Lion>(o, [o](Weight& x, double g, int) {
      double c = o.beta1 * x.a + (1 - o.beta1) * g;
      x.w -= o.learning_rate * ((c > 0) - (c < 0) + o.weight_decay * x.w);
      x.a = o.beta2 * x.a + (1 - o.beta2) * g;
    });
}

TEST_CASE("a momentum that is switched on later starts as the first gradient, whatever the dampening") {
  Tensor w = tensor({1.0}).requires_grad();
  optim::SGD sgd({w}, {.learning_rate = 1, .dampening = 0.5});
  auto step = [&] {
    w.set_grad(tensor({1.0}));
    double before = w.item();
    sgd.step();
    return before - w.item();
  };
  CHECK(step() == 1);
  sgd.set_momentum(0, 0.5);
  CHECK(step() == 1);
  CHECK(step() == 1);  // 0.5 · 1 + (1 − 0.5) · 1
}

TEST_CASE("Rprop follows its recurrence, to its bounds") {
  using Options = optim::RpropOptions;
  for (const Options& o : {Options{}, Options{.learning_rate = 0.1, .shrink = 0.3, .grow = 1.5},
                           Options{.learning_rate = 0.1, .least = 0.4, .most = 1.6}})
    check<optim::Rprop>(o, [&](Weight& x, double g, int t) {
      double& before = x.a;
      double& s = x.b;
      if (t == 1) s = 1;
      if (g * before > 0) s = std::min(s * o.grow, o.most);
      if (g * before < 0) {
        s = std::max(s * o.shrink, o.least);
        g = 0;
      }
      x.w -= o.learning_rate * s * ((g > 0) - (g < 0));
      before = g;
    });
  Tensor w = ones({2}).requires_grad();
  CHECK_THAT(reel_test::error_of<Error>([&] { optim::Rprop({w}, {.shrink = 1}); }),
             reel_test::contains("Rprop: the factor shrink 1 lies outside (0, 1)"));
  CHECK_THAT(reel_test::error_of<Error>([&] { optim::Rprop({w}, {.least = 2, .most = 1}); }),
             reel_test::contains("Rprop: the bounds 2 and 1 of the steps are not positive and in order"));
}
