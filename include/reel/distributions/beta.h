#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Beta distributions with concentrations α and β, which broadcast to the batch shape; elements are independent.
///
/// Source: PyTorch's torch.distributions.Beta.
class Beta {
 public:
  /// Distributions with densities ∝ x^(α − 1) (1 − x)^(β − 1), α = concentration1 and β = concentration0: tensors or
  /// numbers. A number has the dtype and device of the other, if that is a tensor; two numbers are f32 on the default
  /// device.
  /// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast; Error unless all
  /// concentrations are above 0, which is read from the device.
  Beta(const Arg& concentration1, const Arg& concentration0);

  /// The concentrations α at 1: (batch shape).
  const Tensor& concentration1() const { return concentration1_; }
  /// The concentrations β at 0: (batch shape).
  const Tensor& concentration0() const { return concentration0_; }
  /// α / (α + β): (batch shape).
  Tensor mean(Location where = Location::here()) const;
  /// α β / ((α + β)² (α + β + 1)): (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return concentration1_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws samples without gradients, from the smallest normal number of their dtype to the largest number below 1:
  /// (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients of any order, g₁ / (g₁ + g₀) with g₁ and g₀ of the gamma distributions of α and β, from
  /// the smallest normal number of their dtype to the largest number below 1; samples that are moved there have the
  /// gradient 0: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  /// Source: Figurnov et al., Implicit reparameterization gradients (NeurIPS 2018).
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, (α − 1) log x + (β − 1) log(1 − x) + log Γ(α + β) − log Γ(α) − log Γ(β): x
  /// broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast; Error for a value outside [0, 1].
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, log B(α, β) − (α − 1) ψ(α) − (β − 1) ψ(β) + (α + β − 2) ψ(α + β): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor concentration1_, concentration0_;
};

/// The Kullback–Leibler divergence from q to p in nats, log(B(α_q, β_q) / B(α_p, β_p)) + (α_p − α_q) ψ(α_p) +
/// (β_p − β_q) ψ(β_p) + (α_q + β_q − α_p − β_p) ψ(α_p + β_p): the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Beta& p, const Beta& q, Location where = Location::here());

}  // namespace reel::distributions
