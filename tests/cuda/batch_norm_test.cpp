#include "cuda/close.h"

// Channels that are divided into more parts than a warp has threads; the op table's shapes are too small for that.

namespace reel_test {

using namespace reel;

namespace {

// Returns y, the running statistics, and the gradients of x, weight and bias.
std::vector<Tensor> normalised(const Tensor& x, const Tensor& seed, Device device) {
  Tensor mean = to(zeros({3}, {.dtype = x.dtype()}), device), variance = to(ones({3}, {.dtype = x.dtype()}), device);
  std::vector<Tensor> sources = {to(x, device), to(to(tensor({0.5, 1.0, 2.0}), x.dtype()), device),
                                 to(to(tensor({1.0, 0.0, -1.0}), x.dtype()), device)};
  Tape tape;
  for (const Tensor& source : sources) tape.watch(source);
  Tensor y = batch_norm(sources[0], sources[1], sources[2], mean, variance, {.training = true});
  std::vector<Tensor> all = tape.gradient(y, sources, {.seed = to(seed, device)});
  all.insert(all.end(), {y, mean, variance});
  return all;
}

}  // namespace

TEST_CASE("few and long channels are normalised on a device as on the CPU") {
  if (lacks_device()) return;
  Generator generator(3);
  for (DType dtype : {f32, f64}) {
    Shape shape{7, 3, 150, 151};
    Tensor x = to(randn(shape, {.generator = &generator}) * 2 + 3, dtype);
    Tensor seed = to(randn(shape, {.generator = &generator}) + 1, dtype);
    std::vector<Tensor> expected = normalised(x, seed, cpu), found = normalised(x, seed, gpu);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(name_of(dtype), i);
      CHECK(apart(found[i], expected[i]) <= allowed(dtype));
    }
  }
}

}  // namespace reel_test
