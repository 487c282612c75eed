#include <reel/optim/adam.h>

#include <cmath>

#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "row_loop.h"

namespace reel::optim {

using namespace detail;

namespace {

// The numbers of one step, in the parameter's dtype.
template <class T>
struct Factors {
  T decay, mean_kept, mean_new, square_kept, square_new, root_correction, rate, epsilon;

  Factors(const AdamOptions& options, double learning_rate, std::int64_t steps)
      : decay(static_cast<T>(options.weight_decay)),
        mean_kept(static_cast<T>(options.beta1)),
        mean_new(static_cast<T>(1 - options.beta1)),
        square_kept(static_cast<T>(options.beta2)),
        square_new(static_cast<T>(1 - options.beta2)),
        root_correction(static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, static_cast<double>(steps))))),
        rate(static_cast<T>(learning_rate / (1 - std::pow(options.beta1, static_cast<double>(steps))))),
        epsilon(static_cast<T>(options.epsilon)) {}
};

template <class T>
void descend(T* __restrict w, T* __restrict m, T* __restrict v, const T* __restrict d, std::int64_t count,
             const Factors<T> factor) {
  for (std::int64_t i = 0; i < count; ++i) {
    T g = d[i] + factor.decay * w[i];
    m[i] = factor.mean_kept * m[i] + factor.mean_new * g;
    v[i] = factor.square_kept * v[i] + factor.square_new * g * g;
    w[i] -= factor.rate * m[i] / (std::sqrt(v[i]) * factor.root_correction + factor.epsilon);
  }
}

template <class T>
void descend(Tensor& parameter, const Tensor& gradient, Tensor& mean, Tensor& square, const Factors<T>& factors,
             Location where) {
  auto values = parameter.write<T>(where);
  T *w = values.data(), *m = mean.write<T>(where).data(), *v = square.write<T>(where).data();
  const T* d = gradient.data<T>();
  parallel_for(values.size(), parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    descend(w + begin, m + begin, v + begin, d + begin, end - begin, factors);
  });
}

template <class T>
void descend_rows(Tensor& parameter, const RowGradient& gradient, Tensor& mean, Tensor& square,
                  const Factors<T>& factors, Location where) {
  auto values = parameter.write<T>(where);
  T* w = values.data();
  T *m = mean.write<T>(where).data(), *v = square.write<T>(where).data();
  for_each_row<T>(
      gradient,
      [&](std::int64_t start, const T* d, std::int64_t count) {
        descend(w + start, m + start, v + start, d, count, factors);
      },
      w, m, v);
}

}  // namespace

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options, Location where)
    : Optimiser("Adam", std::move(parameters), options.learning_rate, where), options_(options) {
  for (double beta : {options.beta1, options.beta2})
    if (!(beta >= 0 && beta < 1)) fail<Error>(name(), where, "the beta {} lies outside [0, 1)", beta);
  if (!(options.epsilon >= 0)) fail<Error>(name(), where, "epsilon {} is not 0 or more", options.epsilon);
  if (!(options.weight_decay >= 0))
    fail<Error>(name(), where, "the weight decay {} is not 0 or more", options.weight_decay);
  for (const Tensor& parameter : this->parameters())
    moments_.push_back({zeros_like(Arg(parameter, where)), zeros_like(Arg(parameter, where))});
}

void Adam::update(std::size_t index, Tensor& parameter, const Tensor& gradient, Location where) {
  Moments& moments = moments_[index];
  ++moments.steps;
  if (parameter.dtype() == DType::f32)
    descend(parameter, gradient, moments.mean, moments.square, Factors<float>(options_, learning_rate(), moments.steps),
            where);
  else
    descend(parameter, gradient, moments.mean, moments.square,
            Factors<double>(options_, learning_rate(), moments.steps), where);
}

void Adam::update_rows(std::size_t index, Tensor& parameter, const RowGradient& gradient, Location where) {
  Moments& moments = moments_[index];
  ++moments.steps;
  if (parameter.dtype() == DType::f32)
    descend_rows(parameter, gradient, moments.mean, moments.square,
                 Factors<float>(options_, learning_rate(), moments.steps), where);
  else
    descend_rows(parameter, gradient, moments.mean, moments.square,
                 Factors<double>(options_, learning_rate(), moments.steps), where);
}

}  // namespace reel::optim
