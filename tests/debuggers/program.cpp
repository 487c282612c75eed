// A program for the debuggers' printers: compiled at -O2 with debug information, and stopped in `stop`.

#if defined(__GNUC__) && !defined(__clang__)
// lldb shows no variables of a function that is split into a frequent and a rare part.
#pragma GCC optimize("no-reorder-blocks-and-partition")
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include <reel/reel.h>

using namespace reel;

namespace {

struct Classifier : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 2, {.bias = false}};
  nn::Parameter scale{*this, "scale", {2}, nn::constant(1)};
  nn::Buffer mean{*this, "mean", zeros({3})};
  int depth = 7;
  std::vector<nn::Linear> layers;

  Tensor operator()(const Arg& x) const {
    return call("Classifier", x, [&](const Tensor& x) { return scale * output(tanh(hidden(x - mean))); });
  }
};

// Here the debugger stops: everything that the caller has made is in memory.
[[gnu::noinline]] void stop(const void* const* seen) { asm volatile("" : : "r"(seen) : "memory"); }

}  // namespace

int main() {
  Classifier model;
  Tensor undefined;
  Tensor matrix = tensor<float>({{1, 2, 3}, {4, 5, 6}});
  Tensor transposed = transpose(matrix, 0, 1);
  Tensor flipped = flip(matrix, {1});
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  Tensor odd = tensor<float>({0, nan, -infinity, 2, nan});
  Tensor whole = tensor<std::int64_t>({1, -2, 3});
  Tensor logical = tensor<bool>({true, false});
  Tensor half = to(tensor<float>({0.5F, -1.5F}), f16);
  Tensor brain = to(tensor<float>({0.5F, -1.5F}), bf16);
  Tensor scalar = full({}, 2.5, {.dtype = f64});
  Tensor empty = zeros({0, 3});
  Tensor large = zeros({1000, 1000});
  Tensor weight = ones({2}).requires_grad();
  Shape shape{2, 3}, no_axes;
  NamedTensor named{"weight", weight};
  std::vector<Tensor> several{matrix, undefined, whole};
  Arg number(3);

  weight.set_grad(ones({2}));

  Tape tape;
  Tensor x = tensor<float>({{1, 2, 3}});
  Tensor loss = mean(square(model(x)));
  for (int i = 0; i < 20; ++i) loss = loss + 1.0;
  // Handles of what is no tensor any more, or never was.
  alignas(Tensor) std::byte gone_handle[sizeof(Tensor)], wild_handle[sizeof(Tensor)];
  {
    Tensor freed = zeros({4});
    const auto body = reinterpret_cast<std::uintptr_t>(&freed.body());
    std::memcpy(gone_handle, &body, sizeof body);
  }
  const std::uintptr_t address = 0x123450;
  std::memcpy(wild_handle, &address, sizeof address);
  struct {
    const Tensor* gone;
    const Tensor* wild;
  } handles{reinterpret_cast<const Tensor*>(gone_handle), reinterpret_cast<const Tensor*>(wild_handle)};

  const void* seen[] = {&model, &undefined, &matrix, &transposed, &flipped, &odd,    &whole, &logical,
                        &half,  &brain,     &scalar, &empty,      &large,   &weight, &shape, &no_axes,
                        &named, &several,   &number, &handles,    &tape,    &x,      &loss};
  stop(seen);
  asm volatile("" : : "r"(seen) : "memory");
  std::printf("%g\n", loss.item());
}
