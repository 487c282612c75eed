#include <limits>

#include <reel/ops/activation.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../if_needed.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

namespace {

// log x, clamped to at least −100, so that neither values nor derivatives are infinite.
Tensor cut_log(const Tensor& x) {
  Tensor low = abs(x) <= 3.7200759760208356e-44;
  return where(low, -100.0, log(where(low, 1.0, x)));
}

// log(1 − x), clamped to at least −100: only x = 1 is close enough to 1 for that.
Tensor cut_log_of_rest(const Tensor& x) {
  Tensor one = x == 1;
  return where(one, -100.0, log1p(-where(one, 0.0, x)));
}

}  // namespace

// binary_cross_entropy = −(t log p + (1 − t) log(1 − p))

Tensor binary_cross_entropy(const Arg& input, const Arg& target, const BinaryOptions& options) {
  const char* name = "binary_cross_entropy";
  Compared given(name, input, target);
  const Tensor &p = given.input, &t = given.target;
  Tensor losses = (t - 1.0) * cut_log_of_rest(p) - t * cut_log(p);
  if (options.weight.defined()) losses = losses * factor(name, p, options.weight, "weight", given.dtype, given.where);
  return reduced(losses, options.reduction, given.dtype);
}

// binary_cross_entropy_with_logits = (1 − t) x + (1 + (w − 1) t) log(1 + e^−x)

Tensor binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const BinaryLogitsOptions& options) {
  const char* name = "binary_cross_entropy_with_logits";
  Compared given(name, input, target);
  const Tensor &x = given.input, &t = given.target;
  Tensor rest = softplus(-x, {.threshold = std::numeric_limits<double>::infinity()});
  if (options.pos_weight.defined())
    rest = rest * ((factor(name, x, options.pos_weight, "pos_weight", given.dtype, given.where) - 1.0) * t + 1.0);
  Tensor losses = (1.0 - t) * x + rest;
  if (options.weight.defined()) losses = losses * factor(name, x, options.weight, "weight", given.dtype, given.where);
  return reduced(losses, options.reduction, given.dtype);
}

// kl_div = t (log t − x)

Tensor kl_div(const Arg& input, const Arg& target, DivergenceOptions options) {
  const char* name = "kl_div";
  Compared given(name, input, target);
  const Tensor &x = given.input, &t = given.target;
  bool by_batch = options.reduction == DivergenceReduction::batch_mean;
  if (by_batch && x.rank() == 0)
    fail<ShapeError>(name, given.where, "there is no batch to take the mean of in {}", describe(x));
  Tensor losses;
  if (options.log_target) {
    losses = exp(t) * (t - x);
  } else {
    Tensor nothing = t == 0;
    losses = t * (log(where(nothing, 1.0, t)) - x);
  }
  if (by_batch) return to_if_needed(sum(losses) / static_cast<double>(x.body().dims[0]), given.dtype);
  return reduced(losses, static_cast<LossReduction>(options.reduction), given.dtype);
}

}  // namespace reel
