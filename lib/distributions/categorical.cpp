#include <reel/distributions/categorical.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* categorical_name = "Categorical";

}  // namespace

Categorical::Categorical(const Arg& logits) {
  const Tensor& given = tensor_of(categorical_name, logits);
  CallerScope caller(logits.location());
  check_floating(categorical_name, given, logits.location());
  if (given.rank() == 0 || given.size(-1) == 0)
    fail<ShapeError>(categorical_name, logits.location(), "logits {} have no classes along a last axis",
                     describe(given));
  logits_ = log_softmax(given);
}

Tensor Categorical::probabilities(Location where) const {
  CallerScope caller(where);
  return exp(logits_);
}

Shape Categorical::batch_shape() const { return without_last(logits_.shape()); }

Tensor Categorical::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  CallerScope caller(where);
  Tensor noise = gumbel(shape_of_samples(sample_shape, logits_.shape(), where),
                        {.dtype = logits_.dtype(), .device = logits_.device(), .generator = options.generator});
  return argmax(stop_gradient(logits_) + noise, -1);
}

Tensor Categorical::log_prob(const Arg& classes) const {
  CallerScope caller(classes.location());
  const Tensor& given = tensor_of(categorical_name, classes);
  Shape shape = broadcast_of(categorical_name, given.shape(), batch_shape(), classes.location());
  Tensor index = unsqueeze(expand(given, shape), -1);
  shape.push_back(logits_.size(-1), classes.location());
  return squeeze(gather(expand(logits_, shape), -1, index), -1);
}

Tensor Categorical::entropy(Location where) const {
  CallerScope caller(where);
  Tensor p = exp(logits_);
  return -sum(p * reel::where(p > 0, logits_, 0), -1);
}

Tensor kl_divergence(const Categorical& p, const Categorical& q, Location where) {
  CallerScope caller(where);
  if (p.logits().size(-1) != q.logits().size(-1))
    fail<ShapeError>("kl_divergence", where, "{} classes and {} are not equally many", p.logits().size(-1),
                     q.logits().size(-1));
  broadcast_of("kl_divergence", p.batch_shape(), q.batch_shape(), where);
  Tensor chance = exp(p.logits());
  // Where p is 0 the difference, which may be ∞ − ∞, does not matter.
  return sum(chance * reel::where(chance > 0, p.logits() - q.logits(), 0), -1);
}

}  // namespace reel::distributions
