#include <fmt/format.h>

#include <cmath>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

constexpr std::int64_t steps = 50, batch = 32;

RecurrentWeights weights_of(std::int64_t size, Device device) {
  double bound = 1 / std::sqrt(static_cast<double>(size));
  auto uniform = [&](const Shape& shape) {
    return copy((rand(shape, {.device = device}) * 2 - 1) * bound).requires_grad();
  };
  return {uniform({size, 4 * size}), uniform({size, 4 * size}), uniform({4 * size})};
}

// All steps at once, or one cell after the other in a loop.
Tensor layer(const Tensor& x, const RecurrentWeights& weights) { return lstm(x, {}, weights).output; }
Tensor loop(const Tensor& x, const RecurrentWeights& weights) {
  TensorOptions options{.device = x.device()};
  LSTMState state{zeros({batch, x.size(2)}, options), zeros({batch, x.size(2)}, options)};
  for (int t = 0; t < steps; ++t) state = lstm_cell(x(t), state, weights);
  return state.h;
}

void add(std::vector<CudaCase>& cases, const std::string& what, std::int64_t size, Device device,
         Tensor (*forward)(const Tensor& x, const RecurrentWeights& weights)) {
  std::string name = fmt::format("{} T = {}, B = {}, H = {}", what, steps, batch, size);
  double work = 16.0 * static_cast<double>(steps * batch * size) * static_cast<double>(size);
  cases.push_back({"lstm", name + " forward", 1, work, [=] {
                     Tensor x = randn({steps, batch, size}, {.device = device});
                     return [=, weights = weights_of(size, device)] { forward(x, weights); };
                   }});
  cases.push_back({"lstm", name + " forward, backward", 1, 3 * work, [=] {
                     Tensor x = randn({steps, batch, size}, {.device = device}).requires_grad();
                     RecurrentWeights weights = weights_of(size, device);
                     Tensor seed = ones(forward(x, weights).shape(), {.device = device});
                     return [=] {
                       Tape tape;
                       tape.backward(forward(x, weights), {.seed = seed});
                       for (const Tensor& source : {x, weights.W_x, weights.W_h, weights.bias}) source.set_grad({});
                     };
                   }});
}

}  // namespace

std::vector<CudaCase> recurrent_cases(Device device) {
  std::vector<CudaCase> cases;
  for (std::int64_t size : {128, 512}) add(cases, "lstm", size, device, layer);
  for (std::int64_t size : {128, 512}) add(cases, "lstm cell in a loop", size, device, loop);
  return cases;
}

}  // namespace reel_bench
