#include <reel/optim/clip.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <utility>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "option_checks.h"

namespace reel::optim {

using namespace detail;

namespace {

// Several independent sums, so that the compiler can vectorise without changing the order of any.
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

bool held_by_nobody_else(const Tensor& x) {
  return x.is_contiguous() && x.body().references.unique() && x.body().storage->references.unique();
}

Tensor& held_gradient(Leaf& leaf) { return leaf.row_gradient.defined() ? leaf.row_gradient.values : leaf.gradient; }

// A parameter's gradient: dense, or the values of its row gradient.
Tensor held_gradient(const Tensor& parameter) {
  RowGradient rows = parameter.row_grad();
  return rows.defined() ? rows.values : parameter.grad();
}

void check_tensors(const char* function, std::span<const Tensor> parameters, Location where) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].defined()) fail<Error>(function, where, "tensor {} is undefined", i);
  for (const Tensor& parameter : parameters)
    if (Tensor gradient = held_gradient(parameter);
        gradient.defined() && gradient.dtype() != DType::f32 && gradient.dtype() != DType::f64)
      fail<DTypeError>(function, where, "takes gradients of f32 or f64, not {}", describe(gradient));
}

// The norm of all elements of gradients. On a device each gradient's norm is computed there, which neither overflows nor
// underflows in f32, and the norm of these is read once.
class TotalNorm {
 public:
  void add(const Tensor& parameter, Location where) {
    Tensor gradient = held_gradient(parameter);
    if (!gradient.defined()) return;
    Tensor packed = contiguous_if_needed(Arg(gradient, where));
    if (packed.device() == cpu) {
      on_cpu_ += packed.dtype() == DType::f32 ? sum_of_squares<float>(packed) : sum_of_squares<double>(packed);
      return;
    }
    auto same = [&](const std::vector<Tensor>& norms) {
      return norms[0].device() == packed.device() && norms[0].dtype() == packed.dtype();
    };
    auto group = std::find_if(on_devices_.begin(), on_devices_.end(), same);
    if (group == on_devices_.end()) group = on_devices_.insert(group, std::vector<Tensor>());
    group->push_back(norm(packed));
  }
  double total() const {
    double total = std::sqrt(on_cpu_);
    for (const std::vector<Tensor>& norms : on_devices_)
      total = std::hypot(total, (norms.size() == 1 ? norms[0] : norm(stack(norms))).item());
    return total;
  }

 private:
  double on_cpu_ = 0;
  std::vector<std::vector<Tensor>> on_devices_;
};

double norm_of(const Tensor& parameter, Location where) {
  TotalNorm total;
  total.add(parameter, where);
  return total.total();
}

template <class T, class F>
void change_each(Tensor& x, F f, Location where) {
  auto values = x.write<T>(where);
  for (T& value : values) value = f(value);
}

// A change of gradients: a function of each element on the CPU, and one of a tensor on a device.
template <class F, class G>
struct Change {
  F of_element;
  G of_tensor;
};
template <class F, class G>
Change(F, G) -> Change<F, G>;  // clang 14 deduces no aggregates

template <class F, class G>
void change_each(Tensor& x, const Change<F, G>& change, Location where) {
  if (x.device() != cpu)
    change.of_tensor(x);
  else if (x.dtype() == DType::f32)
    change_each<float>(x, change.of_element, where);
  else
    change_each<double>(x, change.of_element, where);
}

// Returns false if the gradient has other owners.
template <class F>
bool changed_in_place(const Tensor& parameter, F f, Location where) {
  std::lock_guard lock(gradient_mutex());
  Leaf* leaf = parameter.body().leaf;
  if (!leaf || !held_gradient(*leaf).defined()) return true;
  Tensor& gradient = held_gradient(*leaf);
  if (!held_by_nobody_else(gradient)) return false;
  change_each(gradient, f, where);
  return true;
}

// A copy to replace a gradient that has other owners; undefined if it can be changed in place.
Tensor copy_if_shared(const Tensor& parameter) {
  {
    std::lock_guard lock(gradient_mutex());
    Leaf* leaf = parameter.body().leaf;
    if (!leaf || !held_gradient(*leaf).defined() || held_by_nobody_else(held_gradient(*leaf))) return {};
  }
  return copy(stop_gradient(held_gradient(parameter)));
}

// Applies f to every element of a gradient, as float or double.
template <class F>
void change(const Tensor& parameter, Tensor substitute, F f, Location where) {
  if (changed_in_place(parameter, f, where)) return;
  // Another thread has become an owner meanwhile.
  if (!substitute.defined()) substitute = copy(stop_gradient(held_gradient(parameter)));
  change_each(substitute, f, where);
  std::lock_guard lock(gradient_mutex());
  std::swap(held_gradient(*parameter.body().leaf), substitute);
}

// Applies f(i) to the gradient of each parameter i: on the CPU to all of them or, if memory is exhausted, to none.
template <class F>
void change_all(std::span<const Tensor> parameters, F f, Location where) {
  std::vector<Tensor> substitutes;
  substitutes.reserve(parameters.size());
  for (const Tensor& parameter : parameters) substitutes.push_back(copy_if_shared(parameter));
  for (std::size_t i = 0; i < parameters.size(); ++i) change(parameters[i], std::move(substitutes[i]), f(i), where);
}

auto scaling(double factor, Location where) {
  return Change{[factor]<class T>(T value) { return value * static_cast<T>(factor); },
                [factor, where](Tensor& x) { mul_(Destination(x, where), factor); }};
}

// The factor that scales a norm down to the largest allowed one; 1 if it is small enough, or not finite.
double factor_for(double norm, double max_norm) {
  double factor = max_norm / (norm + 1e-6);
  return std::isfinite(norm) && factor < 1 ? factor : 1;
}

}  // namespace

double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where) try {
  check_not_negative("clip_grad_norm", "largest norm", max_norm, where);
  NoRecord pause;
  CallerScope caller(where);
  check_tensors("clip_grad_norm", parameters, where);
  TotalNorm total;
  for (const Tensor& parameter : parameters) total.add(parameter, where);
  double norm = total.total(), factor = factor_for(norm, max_norm);
  if (factor == 1) return norm;
  change_all(
      parameters, [&](std::size_t) { return scaling(factor, where); }, where);
  return norm;
} catch (const std::bad_alloc&) {
  fail_for_memory("clip_grad_norm", where);
}

std::vector<double> clip_grad_norm_each(std::span<const Tensor> parameters, double max_norm, Location where) try {
  check_not_negative("clip_grad_norm_each", "largest norm", max_norm, where);
  NoRecord pause;
  CallerScope caller(where);
  check_tensors("clip_grad_norm_each", parameters, where);
  std::vector<double> norms;
  for (const Tensor& parameter : parameters) norms.push_back(norm_of(parameter, where));
  change_all(
      parameters, [&](std::size_t i) { return scaling(factor_for(norms[i], max_norm), where); }, where);
  return norms;
} catch (const std::bad_alloc&) {
  fail_for_memory("clip_grad_norm_each", where);
}

void clip_grad_value(std::span<const Tensor> parameters, double limit, Location where) try {
  check_not_negative("clip_grad_value", "limit", limit, where);
  NoRecord pause;
  CallerScope caller(where);
  check_tensors("clip_grad_value", parameters, where);
  auto cut = [limit]<class T>(T value) {
    T most = static_cast<T>(limit);
    return value > most ? most : value < -most ? -most : value;
  };
  auto cut_on_device = [limit, where](Tensor& x) { clamp_(Destination(x, where), -limit, limit); };
  change_all(
      parameters,
      [&](std::size_t) {
        return Change{cut, cut_on_device};
      },
      where);
} catch (const std::bad_alloc&) {
  fail_for_memory("clip_grad_value", where);
}

void scale_grad(std::span<const Tensor> parameters, double factor, Location where) try {
  if (!std::isfinite(factor)) fail<Error>("scale_grad", where, "the factor {} is not finite", factor);
  NoRecord pause;
  CallerScope caller(where);
  check_tensors("scale_grad", parameters, where);
  change_all(
      parameters, [&](std::size_t) { return scaling(factor, where); }, where);
} catch (const std::bad_alloc&) {
  fail_for_memory("scale_grad", where);
}

}  // namespace reel::optim
