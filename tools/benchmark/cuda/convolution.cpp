#include <fmt/format.h>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

// A layer of ResNet-50 on 224 × 224 pixels.
struct Layer {
  std::int64_t in, out, window, stride, size;
};

constexpr std::int64_t batch = 32;

void add(std::vector<CudaCase>& cases, const Layer& layer, const std::string& dtype, Device device) {
  std::int64_t padding = layer.window / 2, size = (layer.size + 2 * padding - layer.window) / layer.stride + 1;
  std::string name = fmt::format("conv2d {} ({}, {}, {}, {}) {} x {} by {} to {}", dtype, batch, layer.in, layer.size,
                                 layer.size, layer.window, layer.window, layer.stride, layer.out);
  double work = 2.0 * static_cast<double>(batch * layer.out * size * size) *
                static_cast<double>(layer.in * layer.window * layer.window);
  DType type = dtype == "bf16" ? DType::bf16 : DType::f32;
  bool tf32 = dtype == "tf32";
  auto operands = [=] {
    return std::pair(to(randn({batch, layer.in, layer.size, layer.size}, {.device = device}), type),
                     to(randn({layer.out, layer.in, layer.window, layer.window}, {.device = device}), type));
  };
  cases.push_back({"conv", name + " forward", 1, work,
                   [=] {
                     auto [x, w] = operands();
                     return [=, x = x, w = w] { conv2d(x, w, {.stride = layer.stride, .padding = padding}); };
                   },
                   tf32});
  cases.push_back({"conv", name + " forward, backward", 1, 3 * work,
                   [=] {
                     auto [x, w] = operands();
                     Tensor seed = to(randn({batch, layer.out, size, size}, {.device = device}), type);
                     return [=, x = x, w = w] {
                       Tape tape;
                       tape.watch(x);
                       tape.watch(w);
                       Tensor y = conv2d(x, w, {.stride = layer.stride, .padding = padding});
                       tape.gradient(y, std::vector{x, w}, {.seed = seed});
                     };
                   },
                   tf32});
}

}  // namespace

std::vector<CudaCase> convolution_cases(Device device) {
  std::vector<CudaCase> cases;
  for (const Layer& layer : {Layer{3, 64, 7, 2, 224}, Layer{64, 64, 3, 1, 56}, Layer{256, 64, 1, 1, 56},
                             Layer{128, 128, 3, 1, 28}, Layer{256, 256, 3, 1, 14}, Layer{512, 512, 3, 1, 7}})
    for (const char* dtype : {"f32", "tf32", "bf16"}) add(cases, layer, dtype, device);
  return cases;
}

}  // namespace reel_bench
