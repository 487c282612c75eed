#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Distributions over C classes: class c has the probability softmax(logits)_c.
///
///     distributions::Categorical policy(zeros({8, 4}));  // 8 distributions over 4 classes
///     Tensor action = policy.sample();                   // (8), of i64
///     Tensor log_probability = policy.log_prob(action);  // (8)
///
/// Source: PyTorch's torch.distributions.Categorical with its argument `logits`.
class Categorical {
 public:
  /// Distributions with logits (batch shape, C). A logit of −∞ excludes its class.
  /// Throws: DTypeError unless floating; ShapeError without an axis, and without a class.
  explicit Categorical(const Arg& logits);

  /// The logarithms of the probabilities: (batch shape, C).
  const Tensor& logits() const { return logits_; }
  /// The probabilities: (batch shape, C).
  Tensor probabilities(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const;
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws classes in [0, C), of i64 and without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  /// Source: the largest of logit + Gumbel noise; Gumbel, Statistical theory of extreme values (1954).
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the probability of classes of i32 or i64, which broadcast with the batch shape.
  /// Throws: DTypeError for another dtype; IndexError for a class outside [0, C), which is read from the device;
  /// ShapeError if they do not broadcast.
  Tensor log_prob(const Arg& classes) const;
  /// The entropy in nats, −Σ_c p_c log p_c: (batch shape). A class of probability 0 adds 0.
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor logits_;
};

/// The Kullback–Leibler divergence from q to p in nats, Σ_c p_c log(p_c / q_c): the batch shapes broadcast. A class of
/// p_c = 0 adds 0, another one of q_c = 0 makes it ∞.
/// Throws: ShapeError unless both have equally many classes and the batch shapes broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Categorical& p, const Categorical& q, Location where = Location::here());

}  // namespace reel::distributions
