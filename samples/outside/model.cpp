// Fits a line to points, saves it, and says which reel it runs with: a whole program outside of reel's own build.

#include <reel/reel.h>

#include <cstdio>

using namespace reel;

int main() {
  std::printf("reel %s, headers of %s\n", library_version().string, version.string);
  std::printf("GPU: %s\n", cuda::is_available() ? "yes" : cuda::why_not().c_str());

  manual_seed(1);
  Tensor x = rand({64, 1}), y = 3 * x - 1;
  nn::Linear line(1, 1);
  optim::Adam adam(line.parameters(), {.learning_rate = 0.1});
  for (int step = 0; step < 500; ++step) {
    Tape tape;
    tape.backward(mean(square(line(x) - y)));
    adam.step();
    adam.zero_grad();
  }
  io::save_npz("line.npz", {{"weight", line.weight}, {"bias", line.bias}}, {.compress = true});
  auto saved = io::load_npz("line.npz");
  std::printf("y = %.2f x %+.2f\n", saved.at("weight").item(), saved.at("bias").item());
}
