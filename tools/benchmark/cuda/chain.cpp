#include <fmt/format.h>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

constexpr int length = 100;

Tensor chain(Tensor x, const Tensor& a, const Tensor& b) {
  for (int i = 0; i < length / 2; ++i) {
    x = x * a;
    x = x + b;
  }
  return x;
}

Tensor tanh_chain(Tensor x, const Tensor& a, const Tensor&) {
  for (int i = 0; i < length / 2; ++i) x = tanh(x * a);
  return x;
}

struct Operands {
  Tensor x, a, b;

  Operands(std::int64_t size, Device device)
      : x(randn({size}, {.device = device})),
        // About 1, so that nothing grows or vanishes.
        a(copy(randn({size}, {.device = device}) * 1e-3 + 1)),
        b(randn({size}, {.device = device})) {}
};

void add(std::vector<CudaCase>& cases, const std::string& what, std::int64_t size, Device device,
         Tensor (*compute)(Tensor x, const Tensor& a, const Tensor& b)) {
  std::string name = fmt::format("chain of {}, [{}]", what, size);
  cases.push_back({"chain", name + " forward", length, 0,
                   [=] { return [=, o = Operands(size, device)] { compute(o.x, o.a, o.b); }; }});
  cases.push_back({"chain", name + " forward, backward", length, 0, [=] {
                     Operands o(size, device);
                     for (Tensor* one : {&o.x, &o.a, &o.b}) one->requires_grad();
                     return [=, seed = ones({size}, {.device = device})] {
                       Tape tape;
                       tape.backward(compute(o.x, o.a, o.b), {.seed = seed});
                       for (const Tensor& one : {o.x, o.a, o.b}) one.set_grad({});
                     };
                   }});
}

}  // namespace

std::vector<CudaCase> chain_cases(Device device) {
  std::vector<CudaCase> cases;
  for (std::int64_t size : {64, 4096}) {
    add(cases, "mul, add", size, device, chain);
    add(cases, "mul, tanh", size, device, tanh_chain);
  }
  return cases;
}

}  // namespace reel_bench
