#include <reel/reel.h>

#include <cmath>
#include <functional>

#include "catch.h"

using namespace reel;

namespace {

Tensor normal(const Shape& shape) { return randn(shape, {.dtype = f64}); }

using Parameters = std::vector<Tensor>;
using Objective = std::function<double(const Parameters&)>;

// The derivative of an objective by element i of parameter k: central differences with `step` and half of it,
// extrapolated, which cuts off what is of the order of step⁴.
double difference_by(const Objective& objective, const Parameters& at, std::size_t k, std::int64_t i, double step) {
  auto value_at = [&](double move) {
    Parameters moved = at;
    moved[k] = copy(at[k]);
    moved[k].write<double>()[i] += move;
    return objective(moved);
  };
  auto central = [&](double h) { return (value_at(h) - value_at(-h)) / (2 * h); };
  return (4 * central(step / 2) - central(step)) / 3;
}

// The largest error of gradients against differences, over all elements, relative to max(1, |difference|).
double worst_error(const Objective& objective, const Parameters& at, const std::vector<Tensor>& gradients,
                   double step) {
  double worst = 0;
  for (std::size_t k = 0; k < at.size(); ++k)
    for (std::int64_t i = 0; i < at[k].numel(); ++i) {
      double difference = difference_by(objective, at, k, i, step);
      double error = std::abs(contiguous(gradients[k]).data<double>()[i] - difference);
      worst = std::max(worst, error / std::max(1.0, std::abs(difference)));
    }
  return worst;
}

// The truncation error is about step⁴ = 1e-16 times a fifth derivative, the rounding error about 1e-16 / step = 1e-12.
constexpr double usual_step = 1e-4, usual_tolerance = 1e-8;

}  // namespace

// Gulrajani et al., Improved Training of Wasserstein GANs (2017).

namespace {

Tensor critic(const Tensor& x, std::span<const Tensor> weights) {
  Tensor h = softplus(matmul(x, weights[0]) + weights[1]);
  h = tanh(matmul(h, weights[2]) + weights[3]);
  return matmul(h, weights[4]);
}

// λ mean (‖∂D/∂x‖ − 1)² where real and generated examples are mixed, beside the Wasserstein distance
Tensor critic_loss(std::span<const Tensor> weights, const Tensor& real, const Tensor& generated, const Tensor& share) {
  Tensor mixed = share * real + (1 - share) * generated, slope;
  {
    Tape tape;
    tape.watch(mixed);
    slope = tape.gradient(sum(critic(mixed, weights)), mixed);
  }
  Tensor penalty = mean(square(sqrt(sum(square(slope), 1)) - 1));
  return mean(critic(generated, weights)) - mean(critic(real, weights)) + 10 * penalty;
}

}  // namespace

TEST_CASE("a WGAN step: the gradient of a gradient penalty by the critic's weights agrees with differences") {
  manual_seed(1);
  Tensor real = normal({5, 3}), generated = normal({5, 3}) * 0.5 + 1, share = rand({5, 1}, {.dtype = f64});
  Parameters weights{normal({3, 8}), normal({8}), normal({8, 6}), normal({6}), normal({6, 1})};
  for (const Tensor& weight : weights) weight.requires_grad();
  {
    Tape tape;
    tape.backward(critic_loss(weights, real, generated, share));
  }
  std::vector<Tensor> gradients;
  for (const Tensor& weight : weights) gradients.push_back(weight.grad());
  Objective loss = [&](const Parameters& at) { return critic_loss(at, real, generated, share).item(); };
  Parameters plain;
  for (const Tensor& weight : weights) plain.push_back(stop_gradient(weight));
  CHECK(worst_error(loss, plain, gradients, usual_step) < usual_tolerance);
}

// Finn et al., Model-Agnostic Meta-Learning (2017).

namespace {

// A convolution whose rows an LSTM reads as a sequence, normalised, and a linear layer.
Tensor reader(const Tensor& images, std::span<const Tensor> weights) {
  std::int64_t count = images.size(0);
  Tensor features = tanh(conv2d(images, weights[0], weights[1]));  // (N, C, rows, columns)
  Tensor rows = flatten(permute(features, {2, 0, 1, 3}), 2, 3);    // (rows, N, C columns)
  Tensor normalised = layer_norm(rows, {rows.size(2)}, weights[2], weights[3]);
  Tensor nothing = zeros({1, count, weights[5].size(0)}, {.dtype = f64});
  LSTMOutput read = lstm(normalised, {nothing, nothing}, {weights[4], weights[5], weights[6]});
  return matmul(select(read.h_n, 0, 0), weights[7]);
}

struct Task {
  Tensor support, support_targets, query, query_targets;
};

// The loss on the query after two steps on the support.
Tensor meta_loss(const Parameters& weights, const Task& task) {
  constexpr double rate = 0.1;
  Parameters adapted = weights;
  for (int step = 0; step < 2; ++step) {
    std::vector<Tensor> gradients = jacobian(
        [&](std::span<const Tensor> at) { return mean(square(reader(task.support, at) - task.support_targets)); },
        adapted);
    for (std::size_t k = 0; k < adapted.size(); ++k) adapted[k] = adapted[k] - rate * gradients[k];
  }
  return mean(square(reader(task.query, adapted) - task.query_targets));
}

}  // namespace

TEST_CASE("a MAML step: the gradient through inner steps of convolution, layer norm, LSTM and matmul is right") {
  manual_seed(1);
  Task task{normal({2, 1, 4, 4}), normal({2, 2}), normal({3, 1, 4, 4}), normal({3, 2})};
  constexpr std::int64_t channels = 2, features = channels * 3, hidden = 3;
  Parameters weights{
      normal({channels, 1, 2, 2}),    normal({channels}),           normal({features}),   normal({features}),
      normal({features, 4 * hidden}), normal({hidden, 4 * hidden}), normal({4 * hidden}), normal({hidden, 2})};
  Tape tape;
  for (const Tensor& weight : weights) tape.watch(weight);
  std::vector<Tensor> gradients = tape.gradient(meta_loss(weights, task), weights);
  // Constants for the difference, which opens its own tapes.
  Objective loss = [&](const Parameters& at) { return meta_loss(at, task).item(); };
  CHECK(worst_error(loss, weights, gradients, usual_step) < usual_tolerance);
}

// Two masses on rods of 1 m, one below the other, by Runge and Kutta's method of fourth order.

namespace {

struct Pendulum {
  Tensor angle_1, angle_2, speed_1, speed_2;
};

Pendulum operator+(const Pendulum& a, const Pendulum& b) {
  return {a.angle_1 + b.angle_1, a.angle_2 + b.angle_2, a.speed_1 + b.speed_1, a.speed_2 + b.speed_2};
}
Pendulum operator*(double factor, const Pendulum& a) {
  return {factor * a.angle_1, factor * a.angle_2, factor * a.speed_1, factor * a.speed_2};
}

// Per second.
Pendulum change(const Pendulum& now, const Tensor& mass_1, const Tensor& mass_2) {
  constexpr double gravity = 9.81;
  Tensor s = sin(now.angle_1 - now.angle_2), c = cos(now.angle_1 - now.angle_2);
  Tensor pull_1 = gravity * sin(now.angle_1), pull_2 = gravity * sin(now.angle_2);
  Tensor turn_1 = square(now.speed_1), turn_2 = square(now.speed_2);
  Tensor both = mass_1 + mass_2, inertia = mass_1 + mass_2 * square(s);
  return {now.speed_1, now.speed_2, (mass_2 * (pull_2 * c - s * (turn_1 * c + turn_2)) - both * pull_1) / inertia,
          (both * (turn_1 * s - pull_2 + pull_1 * c) + mass_2 * turn_2 * s * c) / inertia};
}

// A combination of the position and speed after 1,000 steps, as a function of angles, speeds and masses.
Tensor swung(const Parameters& start) {
  constexpr double seconds = 0.005;  // a step
  Pendulum now{start[0], start[1], start[2], start[3]};
  auto slope = [&](const Pendulum& at) { return change(at, start[4], start[5]); };
  for (int step = 0; step < 1000; ++step) {
    Pendulum a = slope(now), b = slope(now + seconds / 2 * a), c = slope(now + seconds / 2 * b),
             d = slope(now + seconds * c);
    now = now + seconds / 6 * (a + 2 * b + 2 * c + d);
  }
  return now.angle_1 + now.angle_2 + 0.1 * (now.speed_1 - now.speed_2);
}

}  // namespace

TEST_CASE("gradients run through 1,000 Runge-Kutta steps of a double pendulum, chaotic as it is") {
  Parameters start;
  for (double value : {2.0, 2.5, 0.3, -0.2, 1.0, 1.3}) start.push_back(full({}, value, {.dtype = f64}));
  std::vector<Tensor> gradients;
  {
    Tape tape;
    for (const Tensor& value : start) tape.watch(value);
    gradients = tape.gradient(swung(start), start);
  }
  double growth = max(abs(stack(gradients))).item();
  CHECK(growth > 500);
  // A change h at the start is a change of up to h G at the end, G being `growth`. Differences cut off about (h G)⁴ = 3e-13
  // of G. Each of 4,000 slopes is rounded by 1e-16, which grows by G too, and is divided by h: 4e-7 G at
  // the worst.
  constexpr double h = 1e-6;
  Objective end = [](const Parameters& at) { return swung(at).item(); };
  for (std::size_t k = 0; k < start.size(); ++k) {
    CHECK(std::abs(gradients[k].item() - difference_by(end, start, k, 0, h)) < 5e-7 * growth);
  }
}
