#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Poisson distributions with rates λ: k events with the probability λ^k e^−λ / k!; elements are independent. Samples
/// have no gradients.
///
/// Source: PyTorch's torch.distributions.Poisson.
class Poisson {
 public:
  /// Distributions with rates, which are expected numbers of events: a tensor (batch shape), or a number, which is f32
  /// on the default device.
  /// Throws: DTypeError unless floating; Error for a negative rate, which is read from the device.
  explicit Poisson(const Arg& rate);

  /// The rates λ: (batch shape).
  const Tensor& rate() const { return rate_; }
  /// λ: (batch shape).
  const Tensor& mean() const { return rate_; }
  /// λ: (batch shape).
  const Tensor& variance() const { return rate_; }
  /// The shape of the distributions.
  Shape batch_shape() const { return rate_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws whole numbers in the dtype of the rates and without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  /// Source: Hörmann, The transformed rejection method for generating Poisson random variables (1993), algorithm PTRS,
  /// for rates from 10 on; the inverse of the distribution function for smaller ones.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the probability, x log λ − λ − log x!: x, of any dtype but bool, broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast; Error for a value that is not a whole number from 0 on.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, λ − λ log λ + Σ_k p_k log k!, of which no closed form exists: (batch shape). It is the sum for
  /// rates below 50, and from there its asymptotic series, whose relative error is at most 10⁻¹¹. For a rate of 0
  /// it is 0, with a gradient of 0.
  /// Source: Evans, Boersma, Blachman and Jagers, The entropy of a Poisson distribution (1988).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor rate_;
};

/// The Kullback–Leibler divergence from q to p in nats, λ_p log(λ_p / λ_q) − λ_p + λ_q: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Poisson& p, const Poisson& q, Location where = Location::here());

}  // namespace reel::distributions
