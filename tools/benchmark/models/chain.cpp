#include <cmath>

#include "drawn.h"
#include "examples.h"

namespace reel_bench {

using namespace reel;

namespace {

Tensor chain(Tensor x, const Tensor& a, const Tensor& b) {
  for (int i = 0; i < chain_length / 2; ++i) {
    x = x * a;
    x = x + b;
  }
  return x;
}

// The factor is about 1, so that neither values nor gradients grow or vanish.
struct ChainOperands {
  Tensor x = drawn_tensor(1, 1, {chain_size}), a = copy(drawn_tensor(2, 1e-3f, {chain_size}) + 1),
         b = drawn_tensor(3, 1, {chain_size});
};

// Σ |x W| stays what it was but for the tenth: each column has one weight.
Tensor permutation(std::int64_t size, float weight) {
  std::vector<float> values(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < size; ++i) values[static_cast<std::size_t>(i * size + (i * 5 + 3) % size)] = weight;
  return tensor(values, {size, size});
}

}  // namespace

Tensor drawn_tensor(std::uint64_t seed, float scale, const Shape& shape) {
  return tensor(drawn(seed, scale, static_cast<std::size_t>(shape.numel())), shape);
}

Work op_chain() {
  auto [x, a, b] = ChainOperands{};
  return [x = x, a = a, b = b] { return chain(x, a, b).data<float>()[0]; };
}

Work op_chain_backward() {
  auto [x, a, b] = ChainOperands{};
  for (Tensor* one : {&x, &a, &b}) one->requires_grad();
  return [x = x, a = a, b = b, seed = ones({chain_size})] {
    {
      Tape tape;
      tape.backward(chain(x, a, b), {.seed = seed});
    }
    float found = a.grad().data<float>()[0];
    for (const Tensor& one : {x, a, b}) one.set_grad({});
    return found;
  };
}

Work unshared(const BatchOptions& options) {
  std::vector<double> slopes;
  for (int i = 0; i < unshared_examples; ++i) slopes.push_back(0.98 + 1e-4 * i);
  Tensor x = drawn_tensor(1, 1, {chain_size}).requires_grad();
  return [=] {
    Tape tape;
    auto bent = [&](double slope) {
      Tensor y = x;
      for (int i = 0; i < unshared_ops; ++i) y = leaky_relu(y, {.slope = slope});
      return y;
    };
    double found = 0;
    for (const Tensor& one : batch_map(slopes, bent, options)) found += one.data<float>()[0];
    return found;
  };
}

Work product_tanh() {
  float scale = std::sqrt(3 / static_cast<float>(product_size));
  Tensor x = drawn_tensor(1, 1, {1, product_size}).requires_grad(),
         w = drawn_tensor(2, scale, {product_size, product_size}).requires_grad(), seed = ones({1, product_size});
  return [=] {
    {
      Tape tape;
      Tensor h = x;
      for (int i = 0; i < product_count; ++i) h = tanh(matmul(h, w));
      tape.backward(h, {.seed = seed});
    }
    float found = w.grad().data<float>()[0];
    x.set_grad({});
    w.set_grad({});
    return found;
  };
}

Work square_product(DType dtype) {
  Tensor a = to(drawn_tensor(1, 1, {matrix_size, matrix_size}), dtype),
         b = to(drawn_tensor(2, 1, {matrix_size, matrix_size}), dtype);
  return [=] { return to(slice(slice(matmul(a, b), 0, 0, 1), 1, 0, 1), f32).item(); };
}

Work vanishing(bool small, bool flushed) {
  constexpr std::int64_t rows = 32, size = 512;
  float scale = small ? 1e-37f : 0.1f;
  Tensor x = drawn_tensor(1, scale, {rows, size}).requires_grad(), w = permutation(size, 0.9f).requires_grad(),
         seed = drawn_tensor(3, scale, {rows, size});
  return [=] {
    set_flush_denormals(flushed);
    {
      Tape tape;
      Tensor h = x;
      for (int t = 0; t < lstm_steps; ++t) h = tanh(matmul(h, w));
      tape.backward(h, {.seed = seed});
    }
    set_flush_denormals(false);
    float found = x.grad().data<float>()[0];
    x.set_grad({});
    w.set_grad({});
    return found;
  };
}

}  // namespace reel_bench
