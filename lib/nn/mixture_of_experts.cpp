#include <reel/nn/mixture_of_experts.h>

#include <limits>
#include <numbers>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../dispatch/autocast.h"
#include "../ops/if_needed.h"
#include "../ops/recurrent/recurrent.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* gate_name = "NoisyTopKGate";

// A mask that is true for the first k elements of `order` along the last axis.
Tensor first_mask(const Tensor& order, std::int64_t k, const Shape& shape) {
  DeviceGuard here(order.device());
  Tensor chosen = slice(order, -1, 0, k);
  return to(scatter(zeros(shape), -1, chosen, ones(chosen.shape())), DType::boolean);
}

// The variance of Σ_n x divided by the square of its mean + 10⁻¹⁰: 0 if all sums are equal, also to 0. In f32 for
// halves, whose range holds neither the sums nor their squares.
Tensor squared_variation_of_sums(const Tensor& x) {
  Tensor sums = sum(widened(x), 0), center = mean(sums);
  return to_if_needed(mean(square(sums - center)) / (square(center) + 1e-10),
                      autocast_dtype(Precision::full, x.dtype()));
}

Tensor normal_distribution(const Tensor& x) { return (1 + erf(x * std::numbers::sqrt2 / 2)) / 2; }

}  // namespace

Tensor keep_topk(const Arg& x, std::int64_t k) {
  const Tensor& values = tensor_of("keep_topk", x);
  CallerScope caller(x.location());
  check_floating("keep_topk", values, x.location());
  if (values.rank() == 0 || k < 1 || k > values.size(-1))
    fail<ShapeError>("keep_topk", x.location(), "there are not {} of {} along the last axis to keep", k,
                     describe(values));
  Tensor kept = first_mask(topk(stop_gradient(values), k).indices, k, values.shape());
  return masked_fill(values, logical_not(kept), -std::numeric_limits<double>::infinity());
}

namespace {

Initialiser first_values(const NoisyTopKGateOptions& options, std::int64_t in, std::int64_t experts, Location where) {
  if (in < 1 || experts < 1)
    fail<ShapeError>(gate_name, where, "sizes must be positive, not in {}, experts {}", in, experts);
  if (options.k < 1 || options.k > experts)
    fail<ShapeError>(gate_name, where, "{} experts cannot be chosen out of {}", options.k, experts);
  if (!(options.importance_weight >= 0 && options.load_weight >= 0))
    fail<Error>(gate_name, where, "the weights of the loss, {} and {}, are not both 0 or more",
                options.importance_weight, options.load_weight);
  return options.initialiser ? options.initialiser : constant(0);
}

RandomOptions draw(const NoisyTopKGateOptions& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

// The probability P that an expert is chosen for an example; without noise 1 or 0.
Tensor chances(const Tensor& clean, const Tensor& noisy, const Tensor& deviation, std::int64_t k) {
  if (k == clean.size(1)) return ones_like(clean);
  ValuesAndIndices best = topk(noisy, k + 1);
  Tensor chosen = first_mask(best.indices, k, clean.shape());
  if (!deviation.defined()) return to_if_needed(chosen, clean.dtype());
  // For a chosen expert, the k-th largest of the others is the first that is not chosen; for an expert that is not, it
  // is the last chosen one.
  Tensor threshold = where(chosen, slice(best.values, 1, k, k + 1), slice(best.values, 1, k - 1, k));
  return normal_distribution((clean - threshold) / deviation);
}

}  // namespace

NoisyTopKGate::NoisyTopKGate(std::int64_t in, std::int64_t experts, NoisyTopKGateOptions options, Location where)
    : weight(*this, "weight", {in, experts}, first_values(options, in, experts, where), draw(options), where),
      noise_weight(options.noisy ? Parameter(*this, "noise_weight", {in, experts},
                                             first_values(options, in, experts, where), draw(options), where)
                                 : Parameter()),
      options_(options) {}

Gates NoisyTopKGate::operator()(const Arg& x) const {
  return call(gate_name, x, [&](const Tensor& x) -> Gates {
    if (x.rank() != 2 || x.size(1) != weight.size(0))
      fail<ShapeError>(gate_name, {}, "x {} is not (N, {}), as the weight {} needs", to_string(x.shape()),
                       weight.size(0), to_string(weight.shape()));
    Tensor clean = matmul(x, weight), noisy = clean, deviation;
    if (options_.noisy && is_training()) {
      deviation = softplus(matmul(x, noise_weight)) + 1e-2;
      noisy = clean +
              deviation * randn(clean.shape(),
                                {.dtype = clean.dtype(), .device = clean.device(), .generator = options_.generator});
    }
    Tensor weights = softmax(keep_topk(noisy, options_.k), -1);
    Tensor importance = squared_variation_of_sums(weights) * options_.importance_weight;
    Tensor load = squared_variation_of_sums(chances(clean, noisy, deviation, options_.k)) * options_.load_weight;
    return {weights, importance + load};
  });
}

Tensor mix_experts(const Arg& x, const Tensor& weights,
                   const std::function<Tensor(std::size_t expert, const Tensor& x)>& expert) {
  constexpr const char* name = "mix_experts";
  const Tensor& examples = tensor_of(name, x);
  CallerScope caller(x.location());
  if (examples.rank() < 1 || weights.rank() != 2 || weights.size(0) != examples.size(0))
    fail<ShapeError>(name, x.location(), "weights {} are not (N, experts) for the N of x {}", describe(weights),
                     describe(examples));
  std::vector<Tensor> rows, results;
  auto run = [&](std::int64_t e, const Tensor& chosen) {
    Tensor y = expert(static_cast<std::size_t>(e), take(examples, chosen, 0));
    if (y.rank() < 1 || y.size(0) != chosen.numel())
      fail<ShapeError>(name, x.location(), "expert {} gave {} for {} examples", e, describe(y), chosen.numel());
    Shape shape = y.shape();
    for (int axis = 1; axis < shape.rank(); ++axis) shape[axis] = 1;
    results.push_back(y * reshape(take(select(weights, 1, e), chosen, 0), shape));
    rows.push_back(chosen);
  };
  for (std::int64_t e = 0; e < weights.size(1); ++e)
    if (Tensor chosen = reshape(nonzero(stop_gradient(select(weights, 1, e))), {-1}); chosen.numel() > 0)
      run(e, chosen);
  if (rows.empty()) run(0, zeros({0}, {.dtype = DType::i64, .device = examples.device()}));
  Tensor together = concat(results);
  return segment_sum(together, concat(rows), examples.size(0));
}

}  // namespace reel::nn

namespace reel::detail {

Tensor as_examples(const Tensor& x, std::int64_t in) {
  if (x.rank() == 0 || x.size(-1) != in)
    fail<ShapeError>("MixtureOfExperts", {}, "x {} does not end in an axis of size {}", to_string(x.shape()), in);
  return x.rank() == 2 ? x : reshape(x, {x.numel() / in, in});
}

Tensor as_before(const Tensor& y, const Tensor& x) {
  if (x.rank() == 2) return y;
  Shape shape;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) shape.push_back(x.size(axis));
  for (int axis = 1; axis < y.rank(); ++axis) shape.push_back(y.size(axis));
  return reshape(y, shape);
}

}  // namespace reel::detail
