#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// The parameters of a Bernoulli distribution: one of the two.
struct BernoulliParameters {
  Tensor logits = {};         ///< log(p / (1 − p)), of any size
  Tensor probabilities = {};  ///< p, in [0, 1]
};

/// Bernoulli distributions: 1 with probability p, else 0; elements are independent.
///
///     distributions::Bernoulli coin({.logits = zeros({3})});
///     Tensor loss = -sum(coin.log_prob(coin.sample()));
///
/// Source: PyTorch's torch.distributions.Bernoulli.
class Bernoulli {
 public:
  /// Distributions with the given logits or probabilities, (batch shape). Logits are exact for any size, also ±∞; for
  /// what needs logits, but for 0 and 1 in a divergence, probabilities are clamped to [ε, 1 − ε] with the ε of their
  /// dtype.
  /// Throws: Error unless one of the two is defined, and for a probability outside [0, 1] or NaN, which is read from the
  /// device; DTypeError unless it is floating.
  explicit Bernoulli(const BernoulliParameters& parameters, Location where = Location::here());

  /// log(p / (1 − p)): (batch shape).
  const Tensor& logits() const { return logits_; }
  /// p: (batch shape).
  const Tensor& mean() const { return probabilities_; }
  /// p (1 − p): (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return logits_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws zeros and ones, in the parameters' dtype and without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size; Error for a logit that is NaN.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the probability, x log p + (1 − x) log(1 − p): x broadcasts with the batch shape, and may lie
  /// between 0 and 1.
  /// Throws: ShapeError if x does not broadcast; Error for a value outside [0, 1].
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, −p log p − (1 − p) log(1 − p): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  friend Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q, Location where);
  Tensor exact_logits() const;

  Tensor logits_, probabilities_;
  bool is_clamped_ = false;
};

/// The Kullback–Leibler divergence from q to p in nats, p log(p / q) + (1 − p) log((1 − p) / (1 − q)): the batch shapes
/// broadcast. A term of p or 1 − p = 0 is 0, another one of q or 1 − q = 0 makes it ∞.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q, Location where = Location::here());

}  // namespace reel::distributions
