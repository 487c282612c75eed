#include <reel/distributions/categorical.h>

#include <reel/ops.h>
#include <reel/ops/stop_gradient.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "distribution.h"

namespace reel::distributions {

using namespace detail;

namespace {

constexpr const char* categorical_name = "Categorical";

}  // namespace

Categorical::Categorical(const Arg& logits) {
  const Tensor& given = tensor_of(categorical_name, logits);
  OpScope caller(logits.location(), categorical_name);
  check_floating(categorical_name, given, logits.location());
  if (given.rank() == 0 || given.size(-1) == 0)
    fail<ShapeError>(categorical_name, logits.location(), "logits {} have no classes along a last axis",
                     describe(given));
  logits_ = log_softmax(given);
}

Tensor Categorical::probabilities(Location where) const {
  OpScope caller(where, categorical_name);
  return exp(logits_);
}

Shape Categorical::batch_shape() const { return without_last(logits_.shape()); }

Tensor Categorical::sample(const Shape& sample_shape, DrawOptions options, Location where) const {
  OpScope caller(where, categorical_name);
  // Halves are drawn in f32, in which few sums are equal: of equal ones the first class would always be taken.
  Tensor logits = widened(stop_gradient(logits_));
  Tensor noise = gumbel(shape_of_samples(sample_shape, logits.shape(), where),
                        {.dtype = logits.dtype(), .device = logits.device(), .generator = options.generator});
  return argmax(logits + noise, -1);
}

Tensor Categorical::log_prob(const Arg& classes) const {
  OpScope caller(classes.location(), categorical_name);
  const Tensor& given = tensor_of(categorical_name, classes);
  Shape shape = broadcast_of(categorical_name, given.shape(), batch_shape(), classes.location());
  if (given.dtype() != DType::i32 && given.dtype() != DType::i64)
    fail<DTypeError>(categorical_name, classes.location(), "classes are of i32 or i64, not {}", describe(given));
  std::int64_t count = logits_.size(-1);
  if (given.numel() > 0)
    for (auto end : {value_to_check<std::int64_t>(min(given)), value_to_check<std::int64_t>(max(given))})
      if (end < 0 || end >= count)
        fail<IndexError>(categorical_name, classes.location(), "class {} is not in [0, {})", end, count);
  Tensor index = unsqueeze(expand(given, shape), -1);
  shape.push_back(count, classes.location());
  return squeeze(gather(expand(logits_, shape), -1, index), -1);
}

Tensor Categorical::entropy(Location where) const {
  OpScope caller(where, categorical_name);
  Tensor p = exp(logits_);
  return -sum(p * reel::where(p > 0, logits_, 0), -1);
}

Tensor kl_divergence(const Categorical& p, const Categorical& q, Location where) {
  OpScope caller(where, "kl_divergence");
  if (p.logits().size(-1) != q.logits().size(-1))
    fail<ShapeError>("kl_divergence", where, "{} classes and {} are not equally many", p.logits().size(-1),
                     q.logits().size(-1));
  Tensor chance = exp(p.logits());
  // Where p is 0 the difference, which may be ∞ − ∞, does not matter.
  return sum(chance * reel::where(chance > 0, p.logits() - q.logits(), 0), -1);
}

}  // namespace reel::distributions
