// Learns weights from which two steps of gradient descent fit a sine wave that is known at ten points (MAML).

#include <numbers>

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

struct Net : nn::Module {
  nn::Linear first{*this, "first", 1, 40};
  nn::Linear second{*this, "second", 40, 40};
  nn::Linear last{*this, "last", 40, 1};

  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
};

/// Points x, y (20, 1) of a wave of any amplitude and phase.
std::pair<Tensor, Tensor> draw() {
  Tensor amplitude = 0.5 + 4.5 * rand({}), phase = std::numbers::pi * rand({});
  Tensor x = 10 * rand({20, 1}) - 5;
  return {x, amplitude * sin(x - phase)};
}

/// The mean squared error at the last ten points of new waves, after gradient descent on the first ten.
Tensor loss_after(const Net& net, int steps, int waves) {
  Tape tape({.persistent = true});
  std::vector<Tensor> losses;
  for (int wave = 0; wave < waves; ++wave) {
    auto [x, y] = draw();
    std::vector<NamedTensor> weights = net.named_parameters();
    for (int step = 0; step < steps; ++step) {
      Tensor loss = mse_loss(nn::functional_call(net, weights, x(slice(0, 10))), y(slice(0, 10)));
      std::vector<Tensor> gradients = tape.gradient(loss, weights);
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i].tensor = weights[i].tensor - 0.02 * gradients[i];
    }
    losses.push_back(mse_loss(nn::functional_call(net, weights, x(slice(10))), y(slice(10))));
  }
  return mean(stack(losses));
}

int main() {
  manual_seed(1);
  Net net;
  optim::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  for (int step = 0; step < 300; ++step) {
    Tape tape;
    Tensor loss = loss_after(net, 2, 10);
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 50 == 0) fmt::print("step {}: loss {:.3f}\n", step, loss.item());
  }
  double before = loss_after(net, 0, 200).item(), after = loss_after(net, 2, 200).item();
  fmt::print("the squared error is {:.2f} before and {:.2f} after two steps; half of it is required\n", before, after);
  return after > 0.5 * before;
}
