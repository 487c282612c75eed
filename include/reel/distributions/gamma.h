#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Gamma distributions with concentrations α and rates β, which broadcast to the batch shape; elements are independent.
///
/// Source: PyTorch's torch.distributions.Gamma.
class Gamma {
 public:
  /// Distributions with concentrations (shape parameters) and rates (inverse scales): tensors or numbers. A number has
  /// the dtype and device of the other, if that is a tensor; two numbers are f32 on the default device.
  /// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast; Error unless all
  /// concentrations and rates are above 0, which is read from the device.
  Gamma(const Arg& concentration, const Arg& rate);

  /// The concentrations α: (batch shape).
  const Tensor& concentration() const { return concentration_; }
  /// The rates β: (batch shape).
  const Tensor& rate() const { return rate_; }
  /// α / β: (batch shape).
  Tensor mean(Location where = Location::here()) const;
  /// α / β²: (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return concentration_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws samples without gradients, from the smallest normal number of their dtype to its largest one: (sample shape,
  /// batch shape).
  /// Throws: ShapeError for a negative size.
  /// Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients of any order, from the smallest normal number of their dtype to its largest one: (sample
  /// shape, batch shape). The gradient by α is −(∂F/∂α) / (∂F/∂x) with the distribution function F(x; α, β).
  /// Throws: ShapeError for a negative size.
  /// Source: Figurnov et al., Implicit reparameterization gradients (NeurIPS 2018).
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, α log β + (α − 1) log x − β x − log Γ(α): x broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast; Error for a negative value.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, α − log β + log Γ(α) + (1 − α) ψ(α): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor concentration_, rate_;
};

/// The Kullback–Leibler divergence from q to p in nats, α_q log(β_p / β_q) + log Γ(α_q) − log Γ(α_p) + (α_p − α_q)
/// ψ(α_p) + (β_q − β_p) α_p / β_p: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Gamma& p, const Gamma& q, Location where = Location::here());

}  // namespace reel::distributions
