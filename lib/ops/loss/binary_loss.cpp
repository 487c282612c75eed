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

// binary_cross_entropy = −(t log p + (1 − t) log(1 − p))

Tensor binary_cross_entropy(const Arg& input, const Arg& target, const BinaryOptions& options) {
  const char* name = "binary_cross_entropy";
  Compared given(name, input, target);
  Tensor losses = element_losses(ElementLoss::binary_cross_entropy, given);
  if (options.weight.defined())
    losses = losses * factor(name, given.input, options.weight, "weight", given.dtype, given.where);
  return reduced(losses, options.reduction, given.dtype);
}

// binary_cross_entropy_with_logits = (1 − t) x + (1 + (w − 1) t) log(1 + e^−x)

Tensor binary_cross_entropy_with_logits(const Arg& input, const Arg& target, const BinaryLogitsOptions& options) {
  const char* name = "binary_cross_entropy_with_logits";
  Compared given(name, input, target);
  const Tensor& x = given.input;
  Tensor losses = element_losses(ElementLoss::logits_cross_entropy, given);
  if (options.pos_weight.defined()) {
    Tensor more = factor(name, x, options.pos_weight, "pos_weight", given.dtype, given.where) - 1.0;
    Tensor rest = softplus(-widened(x), {.threshold = std::numeric_limits<double>::infinity()});
    losses = losses + more * widened(given.target) * rest;
  }
  if (options.weight.defined()) losses = losses * factor(name, x, options.weight, "weight", given.dtype, given.where);
  return reduced(losses, options.reduction, given.dtype);
}

// kl_div = t (log t − x)

Tensor kl_div(const Arg& input, const Arg& target, DivergenceOptions options) {
  const char* name = "kl_div";
  Compared given(name, input, target);
  const Tensor& x = given.input;
  bool by_batch = options.reduction == DivergenceReduction::batch_mean;
  if (by_batch && x.rank() == 0)
    fail<ShapeError>(name, given.where, "there is no batch to take the mean of in {}", describe(x));
  Tensor losses;
  if (options.log_target) {
    const Tensor t = widened(given.target);
    losses = exp(t) * (t - widened(x));
  } else {
    losses = element_losses(ElementLoss::divergence, given);
  }
  if (by_batch) return to_if_needed(sum(losses) / static_cast<double>(x.body().dims[0]), given.dtype);
  return reduced(losses, static_cast<LossReduction>(options.reduction), given.dtype);
}

}  // namespace reel
