#include <reel/optim/sgd.h>

#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "row_loop.h"

namespace reel::optim {

using namespace detail;

namespace {

// The numbers of one step, in the parameter's dtype.
template <class T>
struct Factors {
  T decay, momentum, own, carried, rate;

  Factors(const SGDOptions& options, double learning_rate)
      : decay(static_cast<T>(options.weight_decay)),
        momentum(static_cast<T>(options.momentum)),
        // With Nesterov's step w − rate (g + μ v), else w − rate v.
        own(options.nesterov ? T(1) : T(0)),
        carried(options.nesterov ? momentum : T(1)),
        rate(static_cast<T>(learning_rate)) {}
};

template <class T>
void descend(T* __restrict w, const T* __restrict d, std::int64_t count, const Factors<T> factor) {
  for (std::int64_t i = 0; i < count; ++i) w[i] -= factor.rate * (d[i] + factor.decay * w[i]);
}

template <class T>
void descend(T* __restrict w, T* __restrict v, const T* __restrict d, std::int64_t count, const Factors<T> factor) {
  for (std::int64_t i = 0; i < count; ++i) {
    T g = d[i] + factor.decay * w[i];
    v[i] = factor.momentum * v[i] + g;
    w[i] -= factor.rate * (factor.own * g + factor.carried * v[i]);
  }
}

template <class T>
void descend(Tensor& parameter, const Tensor& gradient, Tensor* velocity, const Factors<T>& factors, Location where) {
  auto values = parameter.write<T>(where);
  T *w = values.data(), *v = velocity ? velocity->write<T>(where).data() : nullptr;
  const T* d = gradient.data<T>();
  parallel_for(values.size(), parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    if (v)
      descend(w + begin, v + begin, d + begin, end - begin, factors);
    else
      descend(w + begin, d + begin, end - begin, factors);
  });
}

template <class T>
void descend_rows(Tensor& parameter, const RowGradient& gradient, Tensor* velocity, const Factors<T>& factors,
                  Location where) {
  auto values = parameter.write<T>(where);
  T* w = values.data();
  T* v = velocity ? velocity->write<T>(where).data() : nullptr;
  for_each_row<T>(
      gradient,
      [&](std::int64_t start, const T* d, std::int64_t count) {
        if (v)
          descend(w + start, v + start, d, count, factors);
        else
          descend(w + start, d, count, factors);
      },
      w, v);
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, SGDOptions options, Location where)
    : Optimiser("SGD", std::move(parameters), options.learning_rate, where), options_(options) {
  if (!(options.momentum >= 0 && options.momentum < 1))
    fail<Error>(name(), where, "the momentum {} lies outside [0, 1)", options.momentum);
  if (!(options.weight_decay >= 0))
    fail<Error>(name(), where, "the weight decay {} is not 0 or more", options.weight_decay);
  if (options.nesterov && options.momentum == 0) fail<Error>(name(), where, "nesterov needs a momentum above 0");
  if (options.momentum > 0)
    for (const Tensor& parameter : this->parameters()) velocities_.push_back(zeros_like(Arg(parameter, where)));
}

Tensor* SGD::velocity_of(std::size_t index) { return velocities_.empty() ? nullptr : &velocities_[index]; }

void SGD::update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) {
  if (parameter.dtype() == DType::f32)
    descend(parameter, gradient, velocity_of(index), Factors<float>(options_, learning_rate()), where);
  else
    descend(parameter, gradient, velocity_of(index), Factors<double>(options_, learning_rate()), where);
}

void SGD::update_rows(std::size_t index, Tensor& parameter, const RowGradient& gradient, Location where) {
  if (parameter.dtype() == DType::f32)
    descend_rows(parameter, gradient, velocity_of(index), Factors<float>(options_, learning_rate()), where);
  else
    descend_rows(parameter, gradient, velocity_of(index), Factors<double>(options_, learning_rate()), where);
}

}  // namespace reel::optim
