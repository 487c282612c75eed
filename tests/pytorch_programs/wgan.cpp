// Learns to make points near a circle, with a Wasserstein GAN and a penalty on the critic's gradient.

#include <numbers>

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

struct Network : nn::Module {
  nn::Linear first, second, output;

  Network(std::int64_t inputs, std::int64_t outputs, std::int64_t hidden = 64)
      : first(*this, "first", inputs, hidden),
        second(*this, "second", hidden, hidden),
        output(*this, "output", hidden, outputs) {}

  Tensor operator()(const Tensor& x) const { return output(leaky_relu(second(leaky_relu(first(x))))); }
};

/// The mean of (‖critic's gradient‖ − 1)² between real and made points.
Tensor penalty(const Network& critic, const Tensor& real, const Tensor& made) {
  Tensor share = rand({real.size(0), 1});
  Tensor between = share * real + (1 - share) * made;
  Tape tape;
  tape.watch(between);
  Tensor slope = tape.gradient(sum(critic(between)), between);
  return mean(square(sqrt(sum(square(slope), 1) + 1e-12) - 1));
}

/// Points (count, 2) near the unit circle.
Tensor draw(std::int64_t count) {
  Tensor angle = 2 * std::numbers::pi * rand({count});
  return stack({cos(angle), sin(angle)}, 1) + 0.05 * randn({count, 2});
}

int main() {
  manual_seed(1);
  Network generator(2, 2), critic(2, 1);
  optim::Adam generator_adam(generator.parameters(), {.learning_rate = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
  optim::Adam critic_adam(critic.parameters(), {.learning_rate = 1e-3, .beta1 = 0.5, .beta2 = 0.9});
  for (int step = 0; step < 300; ++step) {
    Tensor distance;
    for (int i = 0; i < 5; ++i) {
      Tensor real = draw(64), made = generator(randn({64, 2}));
      Tape tape;
      distance = mean(critic(real)) - mean(critic(made));
      critic_adam.zero_grad();
      tape.backward(penalty(critic, real, made) - distance);
      critic_adam.step();
    }
    Tape tape;
    Tensor loss = -mean(critic(generator(randn({64, 2}))));
    generator_adam.zero_grad();
    tape.backward(loss);
    generator_adam.step();
    if (step % 50 == 0) fmt::print("step {}: distance {:.3f}\n", step, distance.item());
  }
  Tensor made = generator(randn({1000, 2}));
  double near = mean(to(abs(norm(made, 1) - 1) < 0.25, f32)).item();
  double centre = norm(mean(made, 0)).item();
  fmt::print("{:.1f} % of the points are near the circle, of 75 %; off by {:.2f} of 0.3\n", 100 * near, centre);
  return near < 0.75 || centre > 0.3;
}
