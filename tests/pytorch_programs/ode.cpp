// Learns the law of a damped oscillation from noisy trajectories: a neural ordinary differential equation.

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

/// dy/dt of a state y (N, 2).
struct Field : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 32};
  nn::Linear output{*this, "output", 32, 2};

  Tensor operator()(double, const Tensor& y) const { return output(tanh(hidden(y))); }
};

/// The law that is to be found: y'' = −2 y − y' / 5, where y (N, 2) is the angle and its derivative.
Tensor oscillation(double, const Tensor& y) {
  Tensor angle = select(y, 1, 0), speed = select(y, 1, 1);
  return stack({speed, -2 * angle - speed / 5}, 1);
}

int main() {
  manual_seed(1);
  std::vector<double> times;
  for (int i = 0; i < 16; ++i) times.push_back(0.2 * i);
  OdeOptions classical{.method = OdeMethod::runge_kutta4};
  Tensor start = 2 * rand({32, 2}) - 1;
  Tensor observed = odeint(oscillation, start, times, classical);
  observed = observed + 0.02 * randn_like(observed);
  Field field;
  optim::Adam adam(field.parameters(), {.learning_rate = 1e-2});
  for (int step = 0; step < 150; ++step) {
    Tape tape;
    Tensor loss = mean(square(odeint(std::ref(field), start, times, classical) - observed));
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 50 == 0) fmt::print("step {}: loss {:.4f}\n", step, loss.item());
  }
  start = 2 * rand({32, 2}) - 1;
  Tensor error = odeint(std::ref(field), start, times, classical) - odeint(oscillation, start, times, classical);
  double deviation = sqrt(mean(square(error))).item();
  fmt::print("new trajectories are predicted with an error of {:.3f}; 0.1 is allowed\n", deviation);
  return deviation > 0.1;
}
