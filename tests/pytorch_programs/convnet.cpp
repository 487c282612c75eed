// Learns the direction of waves in noisy images, with convolutions and batch normalisation.

#include <numbers>

#include <fmt/format.h>
#include <reel/reel.h>

using namespace reel;

struct ConvNet : nn::Module {
  nn::Conv2d convolution_1{*this, "convolution_1", 1, 8, 3, {.padding = 1, .bias = false}};
  nn::Conv2d convolution_2{*this, "convolution_2", 8, 16, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d normalisation_1{*this, "normalisation_1", 8};
  nn::BatchNorm2d normalisation_2{*this, "normalisation_2", 16};
  nn::Linear output{*this, "output", 16 * 3 * 3, 4};

  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(normalisation_1(convolution_1(x))), 2);
    x = max_pool2d(relu(normalisation_2(convolution_2(x))), 2);
    return output(flatten(x, 1));
  }
};

/// Images (count, 1, 12, 12) of waves in four directions, and the directions (count).
std::pair<Tensor, Tensor> draw(std::int64_t count) {
  Tensor direction = randint(0, 4, {count});
  Tensor angle = reshape(std::numbers::pi / 4 * direction, {-1, 1, 1, 1});
  Tensor phase = 2 * std::numbers::pi * rand({count, 1, 1, 1});
  Tensor column = arange(12.f);
  Tensor row = reshape(column, {-1, 1});
  Tensor waves = sin(cos(angle) * column + sin(angle) * row + phase);
  return {waves + randn({count, 1, 12, 12}), direction};
}

int main() {
  manual_seed(1);
  ConvNet net;
  optim::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  for (int step = 0; step < 100; ++step) {
    auto [images, directions] = draw(32);
    Tape tape;
    Tensor loss = cross_entropy(net(images), directions);
    adam.zero_grad();
    tape.backward(loss);
    adam.step();
    if (step % 25 == 0) fmt::print("step {}: loss {:.3f}\n", step, loss.item());
  }
  net.eval();
  auto [images, directions] = draw(500);
  double accuracy = mean(to(argmax(net(images), 1) == directions, f32)).item();
  fmt::print("{:.1f} % of 500 images are classified correctly; 90 % are required\n", 100 * accuracy);
  return accuracy < 0.9;
}
