// Learns the decays of sums from these: main [cpu|cuda]

#include <cstdio>

#include "decayed_sum.h"

using namespace reel;

int main(int count, char** arguments) {
  Device device = count > 1 ? parse_device(arguments[1]) : cuda::is_available() ? cuda::device() : cpu;
  manual_seed(1);
  auto f = [](std::span<const Tensor> x) { return apply(DecayedSum(), x[0], x[1]); };
  Tensor few = to(randn({5, 3}, {.dtype = f64}), device), decays = to(rand({3}, {.dtype = f64}), device);
  std::puts(debug::gradcheck(f, {few, decays}).text.c_str());
  std::puts(debug::gradgradcheck(f, {few, decays}).text.c_str());

  DeviceGuard guard(device);
  Tensor x = randn({100, 200}), truth = rand({200}), h = apply(DecayedSum(), x, truth);
  Tensor a = full({200}, 0.5).requires_grad();
  optim::Adam adam({a}, {.learning_rate = 0.02});
  Tensor loss;
  for (int i = 0; i < 300; ++i) {
    adam.zero_grad();
    Tape tape;
    loss = mean(square(apply(DecayedSum(), x, a) - h));
    if (i == 0) std::printf("loss %.2f", loss.item());
    tape.backward(loss);
    adam.step();
  }
  std::printf(", then %.2f\n", loss.item());
}
