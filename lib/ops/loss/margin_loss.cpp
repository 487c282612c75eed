#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/norm.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

// hinge_loss = max(0, margin − t x)

Tensor hinge_loss(const Arg& input, const Arg& target, MarginOptions options) {
  Compared given("hinge_loss", input, target);
  return reduced(relu(options.margin - widened(given.target) * widened(given.input)), options.reduction, given.dtype);
}

// hinge_embedding_loss = x where t = 1, max(0, margin − x) where t = −1

Tensor hinge_embedding_loss(const Arg& input, const Arg& target, MarginOptions options) {
  Compared given("hinge_embedding_loss", input, target);
  const Tensor x = widened(given.input), t = widened(given.target);
  Tensor losses = where(t != -1, x, 0.0) + where(t != 1, relu(options.margin - x), 0.0);
  return reduced(losses, options.reduction, given.dtype);
}

// cosine_embedding_loss = 1 − cos(a, b) where t = 1, max(0, cos(a, b) − margin) where t = −1

Tensor cosine_embedding_loss(const Arg& a, const Arg& b, const Arg& target, CosineEmbeddingLossOptions options) {
  const char* name = "cosine_embedding_loss";
  const Tensor& t = tensor_of(name, target);
  Compared given(name, a, b);
  const Tensor x = widened(given.input), y = widened(given.target);
  Shape heads = x.shape();
  bool fits = x.rank() == 1 || x.rank() == 2;
  if (fits) heads = x.rank() == 1 ? Shape{} : Shape{heads[0]};
  if (!fits || t.shape() != heads)
    fail<ShapeError>(name, given.where, "vectors {} and a target {}: there must be (N, D) and (N,), or (D,) and ()",
                     to_string(x.shape()), to_string(t.shape()));
  check_same_device(name, x, t, given.where);
  constexpr double epsilon = 1e-12;
  Tensor sizes = (sum(square(x), -1) + epsilon) * (sum(square(y), -1) + epsilon);
  Tensor cosine = sum(x * y, -1) / sqrt(sizes);
  Tensor losses = where(t == 1, 1.0 - cosine, 0.0) + where(t == -1, relu(cosine - options.margin), 0.0);
  return reduced(losses, options.reduction, given.dtype);
}

// triplet_margin_loss = max(0, margin + ‖a − p‖ − ‖a − n‖)

Tensor triplet_margin_loss(const Arg& anchor, const Arg& positive, const Arg& negative, TripletOptions options) {
  const char* name = "triplet_margin_loss";
  const AutocastArg other(Precision::full, negative);
  const Tensor& far_given = tensor_of(name, other);
  Compared given(name, anchor, positive);
  const Tensor from = widened(given.input), near = widened(given.target);
  check_like(name, *AutocastArg(Precision::full, anchor)->tensor(), far_given, "negative", given.where);
  if (far_given.shape() != from.shape())
    fail<ShapeError>(name, given.where, "the negative {} and the anchor {} have different shapes",
                     to_string(far_given.shape()), to_string(from.shape()));
  if (from.rank() == 0) fail<ShapeError>(name, given.where, "takes vectors (…, D), not {}", describe(from));
  Tensor far = widened(far_given);
  auto distance = [&](const Tensor& a, const Tensor& b) { return norm(a - b + options.epsilon, -1, {.p = options.p}); };
  Tensor apart = distance(from, far);
  if (options.swap) apart = minimum(apart, distance(near, far));
  return reduced(relu(distance(from, near) - apart + options.margin), options.reduction, given.dtype);
}

}  // namespace reel
