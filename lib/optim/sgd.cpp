#include <reel/optim/sgd.h>

#include <reel/ops/create.h>

#include "../core/op_error.h"

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
void descend(Tensor& parameter, const Tensor& gradient, const Factors<T> factor, Location where) {
  auto values = parameter.write<T>(where);
  T* __restrict w = values.data();
  const T* __restrict d = gradient.data<T>();
  for (std::int64_t i = 0; i < values.size(); ++i) w[i] -= factor.rate * (d[i] + factor.decay * w[i]);
}

template <class T>
void descend(Tensor& parameter, const Tensor& gradient, Tensor& velocity, const Factors<T> factor, Location where) {
  auto values = parameter.write<T>(where);
  T* __restrict w = values.data();
  T* __restrict v = velocity.write<T>(where).data();
  const T* __restrict d = gradient.data<T>();
  for (std::int64_t i = 0; i < values.size(); ++i) {
    T g = d[i] + factor.decay * w[i];
    v[i] = factor.momentum * v[i] + g;
    w[i] -= factor.rate * (factor.own * g + factor.carried * v[i]);
  }
}

template <class T>
void descend(Tensor& parameter, const Tensor& gradient, Tensor* velocity, const Factors<T>& factors, Location where) {
  if (velocity)
    descend(parameter, gradient, *velocity, factors, where);
  else
    descend(parameter, gradient, factors, where);
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

void SGD::update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) {
  Tensor* velocity = velocities_.empty() ? nullptr : &velocities_[index];
  if (parameter.dtype() == DType::f32)
    descend(parameter, gradient, velocity, Factors<float>(options_, learning_rate()), where);
  else
    descend(parameter, gradient, velocity, Factors<double>(options_, learning_rate()), where);
}

}  // namespace reel::optim
