#include <reel/optim/optimiser.h>

#include <cmath>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "../core/memory_error.h"
#include "../core/storage.h"
#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

void Optimiser::add_parameters(std::vector<Tensor> parameters, std::size_t group, Location where) {
  with_memory_error(name_, where, [&] {
    if (parameters.empty() && parameters_.empty()) fail<Error>(name_, where, "there is no parameter to train");
    std::unordered_set<const Body*> seen;
    for (const Tensor& parameter : parameters_) seen.insert(&parameter.body());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& parameter = parameters[i];
      if (!parameter.defined()) fail<Error>(name_, where, "parameter {} is an undefined tensor", i);
      // A frozen parameter is still a leaf.
      if (!parameter.body().leaf)
        fail<Error>(name_, where, "tensor {}, {}, is no parameter; call requires_grad() on it", i, describe(parameter));
      if (parameter.dtype() != DType::f32 && parameter.dtype() != DType::f64)
        fail<DTypeError>(name_, where, "parameter {}, {}, is neither f32 nor f64; train an f32 copy", i,
                         describe(parameter));
      if (!parameter.is_contiguous())
        fail<ShapeError>(name_, where, "parameter {}, {}, is not contiguous; make it one with contiguous(x)", i,
                         describe(parameter));
      if (!seen.insert(&parameter.body()).second)
        fail<Error>(name_, where, "parameter {}, {}, is listed twice and would be changed twice", i,
                    describe(parameter));
    }
    memories_.reserve(memories_.size() + parameters.size());
    parameters_.reserve(parameters_.size() + parameters.size());
    if (group >= rates_.size()) rates_.resize(group + 1);
    std::lock_guard lock(gradient_mutex());
    for (Tensor& parameter : parameters) {
      ++parameter.body().leaf->training.optimisers;
      memories_.push_back({group});
      parameters_.push_back(std::move(parameter));
    }
  });
}

Optimiser::~Optimiser() {
  std::lock_guard lock(gradient_mutex());
  for (const Tensor& parameter : parameters_) --parameter.body().leaf->training.optimisers;
}

void Optimiser::check_group(std::size_t group, Location where) const {
  if (group >= group_count()) fail<IndexError>(name_, where, "there is no group {}; it has {}", group, group_count());
}

double Optimiser::learning_rate(std::size_t group, Location where) const {
  check_group(group, where);
  return rate_of(group);
}

void Optimiser::set_learning_rate(double rate, Location where) {
  check_not_negative(name_, "learning rate", rate, where);
  for (std::size_t group = 0; group < group_count(); ++group) put_rate(group, rate);
}

void Optimiser::set_learning_rate(std::size_t group, double rate, Location where) {
  check_group(group, where);
  check_not_negative(name_, "learning rate", rate, where);
  put_rate(group, rate);
}

// A rate that was set by other code is used as a whole.
Optimiser::Rate Optimiser::rate_parts(std::size_t group) const {
  double rate = rate_of(group);
  bool is_whole = rates_[group].scheduled * rates_[group].factor == rate;
  return is_whole ? rates_[group] : Rate{rate, 1};
}

void Optimiser::put_rate_parts(std::size_t group, const Rate& rate) {
  rates_[group] = rate;
  put_rate(group, rate.scheduled * rate.factor);
}

bool Optimiser::has_momentum() const { return group_count() > 0 && !std::isnan(momentum_of(0)); }

double Optimiser::momentum(std::size_t group, Location where) const {
  check_group(group, where);
  if (!has_momentum()) fail<Error>(name_, where, "it has no momentum");
  return momentum_of(group);
}

void Optimiser::set_momentum(std::size_t group, double momentum, Location where) {
  check_group(group, where);
  if (!has_momentum()) fail<Error>(name_, where, "it has no momentum that could be set");
  check_fraction(name_, "momentum", momentum, where);
  put_momentum(group, momentum);
}

UpdateStep Optimiser::update_step(std::size_t, Progress&, Device) const {
  throw InternalError(std::string(name_) + " says nothing of its steps");
}

void Optimiser::zero_grad() const {
  for (const Tensor& parameter : parameters_) parameter.set_grad({});
}

}  // namespace reel::optim
