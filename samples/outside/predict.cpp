// Runs the model of classifier.cpp and nothing else: a program that is linked with libreel.a, starts in milliseconds and needs
// no libreel.so. predict WEIGHTS X Y

#include <reel/io/weights.h>
#include <reel/nn/linear.h>
#include <reel/ops/activation.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/softmax.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

using namespace reel;

struct Classifier : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 32};
  nn::Linear output{*this, "output", 32, 2};

  Tensor operator()(const Arg& x) const { return softmax(output(relu(hidden(x)))); }
};

int main(int count, char** arguments) try {
  if (count != 4) {
    std::fputs("Usage: predict WEIGHTS X Y\n", stderr);
    return 2;
  }
  Classifier model;
  model.eval();
  io::load_into(model, arguments[1]);
  Tensor x = to(tensor({{std::atof(arguments[2]), std::atof(arguments[3])}}), f32);
  std::printf("within the circle with probability %.4f\n", model(x)(0, 1).item());
} catch (const std::exception& error) {
  std::fprintf(stderr, "predict: %s\n", error.what());
  return 1;
}
