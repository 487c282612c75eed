#include <reel/optim/clip.h>

#include <cmath>
#include <mutex>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/storage.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* clip_name = "clip_grad_norm";

// Several sums side by side, so that the compiler can use vectors without changing the order of any.
template <class T>
double sum_of_squares(const Tensor& x) {
  constexpr std::int64_t lanes = 16;
  double sums[lanes] = {};
  const T* values = x.data<T>();
  std::int64_t whole = x.numel() / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes)
    for (std::int64_t k = 0; k < lanes; ++k) {
      double value = values[i + k];
      sums[k] += value * value;
    }
  double total = 0;
  for (std::int64_t i = whole; i < x.numel(); ++i) total += static_cast<double>(values[i]) * values[i];
  for (double sum : sums) total += sum;
  return total;
}

template <class T>
void scale_in_place(Tensor& x, double factor, Location where) {
  auto values = x.write<T>(where);
  for (T& value : values) value *= static_cast<T>(factor);
}

bool held_by_nobody_else(const Tensor& x) {
  return x.is_contiguous() && x.body().references.unique() && x.body().storage->references.unique();
}

// What a parameter has of a gradient: all of it, or the values of its rows.
Tensor held_gradient(const Tensor& parameter) {
  RowGradient rows = parameter.row_grad();
  return rows.defined() ? rows.values : parameter.grad();
}

Tensor& held_gradient(Leaf& leaf) { return leaf.row_gradient.defined() ? leaf.row_gradient.values : leaf.gradient; }

// False: somebody else holds the gradient.
bool scaled_in_place(const Tensor& parameter, double factor, Location where) {
  std::lock_guard lock(gradient_mutex());
  Leaf* leaf = parameter.body().leaf;
  if (!leaf || !held_gradient(*leaf).defined()) return true;
  Tensor& gradient = held_gradient(*leaf);
  if (!held_by_nobody_else(gradient)) return false;
  if (gradient.dtype() == DType::f32)
    scale_in_place<float>(gradient, factor, where);
  else
    scale_in_place<double>(gradient, factor, where);
  return true;
}

void replace_scaled(const Tensor& parameter, double factor) {
  Tensor scaled = stop_gradient(held_gradient(parameter) * factor);
  std::lock_guard lock(gradient_mutex());
  std::swap(held_gradient(*parameter.body().leaf), scaled);
}

}  // namespace

double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where) {
  if (!(max_norm >= 0)) fail<Error>(clip_name, where, "the largest norm {} is not 0 or more", max_norm);
  NoRecord pause;
  CallerScope caller(where);
  double total = 0;
  for (const Tensor& parameter : parameters) {
    Tensor gradient = held_gradient(parameter);
    if (!gradient.defined()) continue;
    if (gradient.dtype() != DType::f32 && gradient.dtype() != DType::f64)
      fail<DTypeError>(clip_name, where, "takes gradients of f32 or f64, not {}", describe(gradient));
    Tensor packed = contiguous(gradient);
    total += packed.dtype() == DType::f32 ? sum_of_squares<float>(packed) : sum_of_squares<double>(packed);
  }
  double norm = std::sqrt(total), factor = max_norm / (norm + 1e-6);
  if (!std::isfinite(norm) || factor >= 1) return norm;
  for (const Tensor& parameter : parameters)
    if (!scaled_in_place(parameter, factor, where)) replace_scaled(parameter, factor);
  return norm;
}

}  // namespace reel::optim
