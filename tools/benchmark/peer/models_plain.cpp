#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <cstring>

#include "../models/drawn.h"
#include "models.h"

namespace reel_bench {

namespace {

at::Tensor chain(at::Tensor x, const at::Tensor& a, const at::Tensor& b) {
  for (int i = 0; i < chain_length / 2; ++i) {
    x = x * a;
    x = x + b;
  }
  return x;
}

float first(const at::Tensor& x) { return x.data_ptr<float>()[0]; }

}  // namespace

at::Tensor torch_drawn(std::uint64_t seed, float scale, const std::vector<std::int64_t>& sizes) {
  at::Tensor made = at::empty(sizes, at::kFloat);
  std::vector<float> values = drawn(seed, scale, static_cast<std::size_t>(made.numel()));
  std::memcpy(made.data_ptr<float>(), values.data(), values.size() * sizeof(float));
  return made;
}

Work torch_op_chain(bool inference_mode) {
  at::Tensor x = torch_drawn(1, 1, {chain_size}), a = torch_drawn(2, 1e-3f, {chain_size}) + 1,
             b = torch_drawn(3, 1, {chain_size});
  return [=] {
    c10::InferenceMode mode(inference_mode);
    return first(chain(x, a, b));
  };
}

Work torch_op_chain_backward() {
  at::Tensor x = torch_drawn(1, 1, {chain_size}), a = torch_drawn(2, 1e-3f, {chain_size}) + 1,
             b = torch_drawn(3, 1, {chain_size});
  for (at::Tensor* one : {&x, &a, &b}) one->requires_grad_();
  at::Tensor seed = at::ones({chain_size});
  return [=] {
    chain(x, a, b).backward(seed);
    float found = first(a.grad());
    for (at::Tensor one : {x, a, b}) one.mutable_grad() = at::Tensor();
    return found;
  };
}

Work torch_product_tanh() {
  float scale = std::sqrt(3 / static_cast<float>(product_size));
  at::Tensor x = torch_drawn(1, 1, {1, product_size}).requires_grad_(),
             w = torch_drawn(2, scale, {product_size, product_size}).requires_grad_(),
             seed = at::ones({1, product_size});
  return [=] {
    at::Tensor h = x;
    for (int i = 0; i < product_count; ++i) h = at::tanh(at::mm(h, w));
    h.backward(seed);
    float found = first(w.grad());
    for (at::Tensor one : {x, w}) one.mutable_grad() = at::Tensor();
    return found;
  };
}

Work torch_square_product(at::ScalarType type) {
  at::Tensor a = torch_drawn(1, 1, {matrix_size, matrix_size}).to(type),
             b = torch_drawn(2, 1, {matrix_size, matrix_size}).to(type);
  return [=] { return at::mm(a, b).select(0, 0).select(0, 0).item<float>(); };
}

}  // namespace reel_bench
