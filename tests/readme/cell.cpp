#include <reel/reel.h>

#include <cmath>
#include <cstdio>

using namespace reel;

#include "readme_cell.h"

namespace {

// One step of a cell of size 1 with an input of size 1, in plain numbers.
double expected(const MinimalGatedUnit& cell, double x, double h) {
  std::vector<float> f = cell.forget.weight.to_vector<float>(), u = cell.update.weight.to_vector<float>();
  double gate = 1 / (1 + std::exp(-(x * f[0] + h * f[1] + cell.forget.bias.item())));
  return (1 - gate) * h + gate * std::tanh(x * u[0] + gate * h * u[1] + cell.update.bias.item());
}

}  // namespace

int main() {
  manual_seed(1);
  nn::Module model;
  MinimalGatedUnit cell(model, "cell", 1, 1);
  Tensor x = full({1, 1}, 0.7), h = full({1, 1}, -0.4);
  double found = cell(x, h).item(), wanted = expected(cell, 0.7, -0.4);
  Tape tape;
  tape.backward(sum(cell(x, h)));
  for (const nn::NamedTensor& parameter : model.named_parameters())
    if (!parameter.tensor.grad().defined()) return 1;
  std::printf("%.7f, wanted %.7f\n", found, wanted);
  return std::abs(found - wanted) < 1e-6 && model.named_parameters().front().name == "cell.forget.weight" ? 0 : 1;
}
