#include <fmt/format.h>

#include <memory>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

using Forward = std::function<Tensor(const std::vector<Tensor>& operands)>;
using Draw = std::function<std::vector<Tensor>()>;

// Forward, and forward with the gradients of all floating operands.
void add(std::vector<CudaCase>& cases, const std::string& family, const std::string& name, const Draw& draw,
         const Forward& forward) {
  cases.push_back({family, name + " forward", 1, 0, [=] { return [=, operands = draw()] { forward(operands); }; }});
  cases.push_back({family, name + " forward, backward", 1, 0, [=] {
                     std::vector<Tensor> operands = draw(), sources;
                     for (const Tensor& operand : operands)
                       if (is_floating(operand.dtype())) sources.push_back(operand);
                     Tensor seed = ones_like(forward(operands));
                     return [=] {
                       Tape tape;
                       for (const Tensor& source : sources) tape.watch(source);
                       tape.gradient(forward(operands), sources, {.seed = seed});
                     };
                   }});
}

CudaCase adam(std::int64_t count, std::int64_t size, Device device) {
  return {"adam", fmt::format("adam step, {} tensors of {}", count, size), 1, 0, [=] {
            std::vector<Tensor> parameters;
            for (std::int64_t i = 0; i < count; ++i) {
              parameters.push_back(randn({size}, {.device = device}).requires_grad());
              parameters.back().set_grad(randn({size}, {.device = device}));
            }
            return [optimiser = std::make_shared<optim::Adam>(parameters)] { optimiser->step(); };
          }};
}

}  // namespace

std::vector<CudaCase> layer_cases(Device device) {
  std::vector<CudaCase> cases;
  RandomOptions on{.device = device};
  add(
      cases, "softmax", "softmax (4096, 1000)",
      [=] {
        return std::vector{randn({4096, 1000}, on)};
      },
      [](const std::vector<Tensor>& o) { return softmax(o[0], 1); });
  add(
      cases, "layer_norm", "layer_norm (4096, 1024)",
      [=] {
        return std::vector{randn({4096, 1024}, on), randn({1024}, on), randn({1024}, on)};
      },
      [](const std::vector<Tensor>& o) { return layer_norm(o[0], {1024}, o[1], o[2]); });
  add(
      cases, "sum", "sum (4096, 4096) over axis 1",
      [=] {
        return std::vector{randn({4096, 4096}, on)};
      },
      [](const std::vector<Tensor>& o) { return sum(o[0], {1}); });
  add(
      cases, "elementwise", "tanh (4096, 4096)",
      [=] {
        return std::vector{randn({4096, 4096}, on)};
      },
      [](const std::vector<Tensor>& o) { return tanh(o[0]); });
  add(
      cases, "embedding", "embedding (100000, 128), 4096 rows",
      [=] {
        return std::vector{randn({100'000, 128}, on), randint(0, 100'000, {4096}, {.device = device})};
      },
      [](const std::vector<Tensor>& o) { return embedding(o[0], o[1]); });
  cases.push_back(adam(100, 100'000, device));
  cases.push_back(adam(1000, 1000, device));
  return cases;
}

}  // namespace reel_bench
