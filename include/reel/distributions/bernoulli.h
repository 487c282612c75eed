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
  /// Distributions with the given logits or probabilities, (batch shape). Logits are exact for any size; for what needs
  /// logits, probabilities are clamped to [ε, 1 − ε] with the ε of their dtype.
  /// Throws: Error unless one of the two is defined; DTypeError unless it is floating.
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
  /// Throws: ShapeError for a negative size; Error for a probability outside [0, 1] or NaN.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the probability, x log p + (1 − x) log(1 − p): x broadcasts with the batch shape, and may lie
  /// between 0 and 1.
  /// Throws: ShapeError if x does not broadcast.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, −p log p − (1 − p) log(1 − p): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor logits_, probabilities_;
};

/// The Kullback–Leibler divergence from q to p in nats, p log(p / q) + (1 − p) log((1 − p) / (1 − q)): the batch shapes
/// broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q, Location where = Location::here());

}  // namespace reel::distributions
