#include <reel/optim/optimiser.h>

#include <unordered_set>
#include <utility>

#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"

namespace reel::optim {

using namespace detail;

namespace {

double checked_rate(const char* name, double rate, Location where) {
  if (!(rate >= 0)) fail<Error>(name, where, "the learning rate {} is not 0 or more", rate);
  return rate;
}

}  // namespace

Optimiser::Optimiser(const char* name, std::vector<Tensor> parameters, double learning_rate, Location where)
    : name_(name), parameters_(std::move(parameters)), learning_rate_(checked_rate(name, learning_rate, where)) {
  std::unordered_set<const Body*> seen;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& parameter = parameters_[i];
    if (!parameter.defined()) fail<Error>(name, where, "parameter {} is an undefined tensor", i);
    if (!parameter.is_parameter())
      fail<Error>(name, where, "tensor {}, {}, is no parameter; call requires_grad() on it", i, describe(parameter));
    if (parameter.dtype() != DType::f32 && parameter.dtype() != DType::f64)
      fail<DTypeError>(name, where, "parameter {}, {}, is neither f32 nor f64; train an f32 copy", i,
                       describe(parameter));
    if (!parameter.is_contiguous())
      fail<ShapeError>(name, where, "parameter {}, {}, is not contiguous; make it one with contiguous(x)", i,
                       describe(parameter));
    if (!seen.insert(&parameter.body()).second)
      fail<Error>(name, where, "parameter {}, {}, is listed twice and would be changed twice", i, describe(parameter));
  }
}

void Optimiser::set_learning_rate(double rate, Location where) { learning_rate_ = checked_rate(name_, rate, where); }

void Optimiser::step(Location where) {
  NoRecord pause;
  CallerScope caller(where);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& parameter = parameters_[i];
    if (RowGradient rows = parameter.row_grad(); rows.defined())
      update_rows(i, parameter, rows, where);
    else if (Tensor gradient = parameter.grad(); gradient.defined())
      update(i, parameter, contiguous(gradient), where);
  }
}

void Optimiser::zero_grad() const {
  for (const Tensor& parameter : parameters_) parameter.set_grad({});
}

}  // namespace reel::optim
