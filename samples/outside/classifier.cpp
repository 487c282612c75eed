// Tells points within a circle from those outside of it. Compiled with -shared it is a plugin, which serve.c loads; as a program
// it trains the model and writes classifier.safetensors, which serve.c loads, too.

#include <reel/c/plugin.h>
#include <reel/reel.h>

#include <cstdio>

using namespace reel;

struct Classifier : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 32};
  nn::Linear output{*this, "output", 32, 2};

  // x: (N, 2) points; the result: (N, 2) probabilities of being outside and within.
  Tensor operator()(const Arg& x) const { return softmax(scores(x)); }
  Tensor scores(const Arg& x) const { return output(relu(hidden(x))); }
};

extern "C" const Plugin* reel_plugin() { return plugin<Classifier>("classifier"); }

int main() {
  manual_seed(1);
  Tensor x = rand({1000, 2}) * 2 - 1, y = to(sum(square(x), {1}) < 0.6, i64);
  Classifier model;
  optim::Adam adam(model.parameters(), {.learning_rate = 0.01});
  for (int step = 0; step < 200; ++step) {
    Tape tape;
    tape.backward(cross_entropy(model.scores(x), y));
    adam.step();
    adam.zero_grad();
  }
  io::save("classifier.safetensors", model);
  std::printf("%.0f %% of the points are told right\n", 100 * mean(to(argmax(model(x), 1) == y, f32)).item());
}
