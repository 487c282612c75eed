#include <reel/optim/clip.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "norm_on_device.h"
#include "option_checks.h"
#include "parameters.h"
#include "update_step.h"

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

// The norm of all elements of gradients, which neither overflows nor underflows in f32. On a device that of all
// gradients of a dtype is computed there at once, and read.
class TotalNorm {
 public:
  TotalNorm(const char* function, Location where) : function_(function), where_(where) {}

  void add(const Tensor& parameter) {
    Tensor gradient = held_gradient(parameter);
    if (!gradient.defined()) return;
    Tensor packed = contiguous_if_needed(Arg(gradient, where_));
    if (packed.device() == cpu) {
      on_cpu_ += packed.dtype() == DType::f32 ? sum_of_squares<float>(packed) : sum_of_squares<double>(packed);
      return;
    }
    auto same = [&](const std::vector<Tensor>& gradients) {
      return gradients[0].device() == packed.device() && gradients[0].dtype() == packed.dtype();
    };
    auto group = std::ranges::find_if(on_devices_, same);
    if (group == on_devices_.end()) group = on_devices_.insert(group, std::vector<Tensor>());
    group->push_back(std::move(packed));
  }
  double total() const {
    double total = std::sqrt(on_cpu_);
    for (const std::vector<Tensor>& gradients : on_devices_)
      total = std::hypot(total, norm_on_device(function_, gradients, where_).item());
    return total;
  }

 private:
  const char* function_;
  Location where_;
  double on_cpu_ = 0;
  std::vector<std::vector<Tensor>> on_devices_;
};

// Holds no gradient when it returns, so that all can be changed in place.
double norm_of(const char* function, std::span<const Tensor> parameters, Location where) {
  TotalNorm total(function, where);
  for (const Tensor& parameter : parameters) total.add(parameter);
  return total.total();
}

// A formula of an update step that reads no gradient.
template <class F>
struct Change {
  NumbersOf<F> numbers;
  UpdateStep on(Device device) const { return UpdateStep::of<F>(device, numbers); }
};

// Changes of tensors on devices by formulas of update steps: equal ones of a device are made by one call.
class DeviceChanges {
 public:
  /// Returns false for a tensor that has a change already: the order of changes counts, and those of a call have none.
  template <class F>
  bool add(const Tensor& x, const Change<F>& change) {
    const Body& body = x.body();
    if (!changed_.insert(body.storage).second) return false;
    prepare_on_device(body, true);
    UpdateStep update_step = change.on(body.device);
    auto equal = [&](const Step& step) { return step.device == body.device && step.update_step == update_step; };
    auto found = std::ranges::find_if(steps_, equal);
    if (found == steps_.end()) {
      steps_.push_back({body.device, update_step, {}});
      found = steps_.end() - 1;
    }
    found->slices.push_back({body.dtype, body.numel, body.data, body.data, {}});
    storages_.push_back(body.storage);
    return true;
  }
  void make(Location where) const {
    Writing writing(storages_, where);
    for (const Step& step : steps_) {
      static_cast<void>(kernels(step.device));  // makes it the one on which kernels run
      step.update_step(step.slices);
    }
  }

 private:
  struct Step {
    Device device;
    UpdateStep update_step;
    std::vector<ParameterSlice> slices;
  };
  std::vector<Step> steps_;
  std::vector<Storage*> storages_;
  std::unordered_set<const Storage*> changed_;
};

template <class T>
void change_on_cpu(Tensor& x, const UpdateStep& update_step, Location where) {
  auto values = x.write<T>(where);
  ParameterSlice slice{x.dtype(), x.numel(), values.data(), values.data(), {}};
  update_step({&slice, 1});
}

template <class F>
void change_each(Tensor& x, const Change<F>& change, Location where) {
  if (x.device() != cpu) {
    DeviceChanges changes;
    changes.add(x, change);
    changes.make(where);
  } else if (x.dtype() == DType::f32) {
    change_on_cpu<float>(x, change.on(cpu), where);
  } else {
    change_on_cpu<double>(x, change.on(cpu), where);
  }
}

// The gradient of a parameter that can be changed in place; null if there is none, or it has other owners.
Tensor* own_gradient(const Tensor& parameter) {
  Leaf* leaf = parameter.body().leaf;
  if (!leaf || !held_gradient(*leaf).defined() || !held_by_nobody_else(held_gradient(*leaf))) return nullptr;
  return &held_gradient(*leaf);
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

// Applies the formula f(i) to the gradient of each parameter i that is on a device and has no other owners, together.
// Returns those for which it has.
template <class F>
std::vector<bool> change_on_devices(std::span<const Tensor> parameters, F f, Location where) {
  std::vector<bool> changed(parameters.size());
  if (std::ranges::all_of(parameters, [](const Tensor& parameter) { return parameter.device() == cpu; }))
    return changed;
  std::lock_guard lock(gradient_mutex());
  DeviceChanges changes;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor* gradient = own_gradient(parameters[i]);
    if (!gradient || gradient->device() == cpu) continue;
    changed[i] = changes.add(*gradient, f(i));
  }
  changes.make(where);
  return changed;
}

// Applies the formula f(i) to the gradient of each parameter i: on the CPU to all of them or, if memory is exhausted, to
// none.
template <class F>
void change_all(std::span<const Tensor> parameters, F f, Location where) {
  std::vector<Tensor> substitutes;
  substitutes.reserve(parameters.size());
  for (const Tensor& parameter : parameters) substitutes.push_back(copy_if_shared(parameter));
  std::vector<bool> changed = change_on_devices(parameters, f, where);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!changed[i]) change(parameters[i], std::move(substitutes[i]), f(i), where);
}

Change<formulas::Scale> scaling(double factor) { return {{factor}}; }

// The factor that scales a norm down to the largest allowed one; 1 if it is small enough, or not finite.
double factor_for(double norm, double max_norm) {
  double factor = max_norm / (norm + 1e-6);
  return std::isfinite(norm) && factor < 1 ? factor : 1;
}

}  // namespace

double clip_grad_norm(std::span<const Tensor> parameters, double max_norm, Location where) {
  return with_memory_error("clip_grad_norm", where, [&]() -> double {
    check_not_negative("clip_grad_norm", "largest norm", max_norm, where);
    NoRecord pause;
    CallerScope caller(where);
    check_tensors("clip_grad_norm", parameters, where);
    double norm = norm_of("clip_grad_norm", parameters, where), factor = factor_for(norm, max_norm);
    if (factor == 1) return norm;
    change_all(
        parameters, [&](std::size_t) { return scaling(factor); }, where);
    return norm;
  });
}

std::vector<double> clip_grad_norm_each(std::span<const Tensor> parameters, double max_norm, Location where) {
  return with_memory_error("clip_grad_norm_each", where, [&]() -> std::vector<double> {
    check_not_negative("clip_grad_norm_each", "largest norm", max_norm, where);
    NoRecord pause;
    CallerScope caller(where);
    check_tensors("clip_grad_norm_each", parameters, where);
    std::vector<double> norms;
    for (const Tensor& parameter : parameters) norms.push_back(norm_of("clip_grad_norm_each", {&parameter, 1}, where));
    change_all(
        parameters, [&](std::size_t i) { return scaling(factor_for(norms[i], max_norm)); }, where);
    return norms;
  });
}

void clip_grad_value(std::span<const Tensor> parameters, double limit, Location where) {
  with_memory_error("clip_grad_value", where, [&] {
    check_not_negative("clip_grad_value", "limit", limit, where);
    NoRecord pause;
    CallerScope caller(where);
    check_tensors("clip_grad_value", parameters, where);
    change_all(
        parameters, [&](std::size_t) { return Change<formulas::Cut>{{limit}}; }, where);
  });
}

void scale_grad(std::span<const Tensor> parameters, double factor, Location where) {
  with_memory_error("scale_grad", where, [&] {
    if (!std::isfinite(factor)) fail<Error>("scale_grad", where, "the factor {} is not finite", factor);
    NoRecord pause;
    CallerScope caller(where);
    check_tensors("scale_grad", parameters, where);
    change_all(
        parameters, [&](std::size_t) { return scaling(factor); }, where);
  });
}

}  // namespace reel::optim
