#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Dirichlet distributions over the probabilities of K classes.
///
/// Source: PyTorch's torch.distributions.Dirichlet.
class Dirichlet {
 public:
  /// Distributions with concentrations α (batch shape, K).
  /// Throws: DTypeError unless floating; ShapeError without an axis, and without a class; Error unless all
  /// concentrations are above 0, which is read from the device.
  explicit Dirichlet(const Arg& concentration);

  /// The concentrations α: (batch shape, K).
  const Tensor& concentration() const { return concentration_; }
  /// α / S with S = Σ_k α_k: (batch shape, K).
  Tensor mean(Location where = Location::here()) const;
  /// The variance of each probability, m (1 − m) / (S + 1) with the mean m: (batch shape, K).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const;
  /// The shape of one sample of one distribution: (K).
  Shape event_shape() const;

  /// Draws samples without gradients, with elements from the smallest normal number of their dtype to the largest number
  /// below 1: (sample shape, batch shape, K).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients of any order, g / Σ_k g_k with g of the gamma distributions of α, with elements from
  /// the smallest normal number of their dtype to the largest number below 1; elements that are moved there have the
  /// gradient 0: (sample shape, batch shape, K).
  /// Throws: ShapeError for a negative size.
  /// Source: Figurnov et al., Implicit reparameterization gradients (NeurIPS 2018).
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, Σ_k ((α_k − 1) log x_k − log Γ(α_k)) + log Γ(S): x (…, K), with leading axes that
  /// broadcast with the batch shape.
  /// Throws: ShapeError if x does not broadcast or has not K elements along its last axis; Error for a negative value,
  /// and unless Σ_k x_k = 1, to 10⁻⁶ or, of halves, 10⁻² and K smallest normal numbers.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, Σ_k (log Γ(α_k) − (α_k − 1) ψ(α_k)) − log Γ(S) + (S − K) ψ(S): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor concentration_;
};

/// The Kullback–Leibler divergence from q to p in nats, log Γ(S_p) − log Γ(S_q) + Σ_k (log Γ(α_q) − log Γ(α_p) +
/// (α_p − α_q) (ψ(α_p) − ψ(S_p))): the batch shapes broadcast.
/// Throws: ShapeError unless both have equally many classes and the batch shapes broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Dirichlet& p, const Dirichlet& q, Location where = Location::here());

}  // namespace reel::distributions
