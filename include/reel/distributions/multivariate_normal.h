#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// The matrix of a multivariate normal distribution: one of the three.
struct MultivariateNormalParameters {
  Tensor covariance_matrix = {};  ///< Σ: (…, N, N), symmetric and positive definite; the lower triangle is read
  Tensor precision_matrix = {};   ///< Σ⁻¹: (…, N, N), symmetric and positive definite; the upper triangle is read
  Tensor scale_tril = {};         ///< L with L Lᵀ = Σ: (…, N, N), lower triangular with a positive diagonal
};

/// Normal distributions of vectors of N elements with means μ and covariances Σ = L Lᵀ.
///
/// Source: PyTorch's torch.distributions.MultivariateNormal.
class MultivariateNormal {
 public:
  /// Distributions with means `loc` (…, N) and one of the matrices; their leading axes broadcast to the batch shape.
  /// Products with scale_tril, the form to which the other two are converted, are the fastest and the most exact.
  /// Throws: Error unless one of the three matrices is given, if one is not positive definite, and for a scale_tril
  /// that is not lower triangular with a positive diagonal, which is read from the device; DTypeError unless both are
  /// f32 or both f64; ShapeError unless the sizes fit and the leading axes broadcast.
  MultivariateNormal(const Arg& loc, const MultivariateNormalParameters& parameters);

  /// The means μ: (batch shape, N).
  const Tensor& mean() const { return loc_; }
  /// The lower triangular factors L: (batch shape, N, N).
  const Tensor& scale_tril() const { return scale_tril_; }
  /// The covariances Σ = L Lᵀ: (batch shape, N, N).
  Tensor covariance_matrix(Location where = Location::here()) const;
  /// The inverses Σ⁻¹ of the covariances: (batch shape, N, N).
  Tensor precision_matrix(Location where = Location::here()) const;
  /// The variance of each element, the diagonal of Σ: (batch shape, N).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const;
  /// The shape of one sample of one distribution: (N).
  Shape event_shape() const;

  /// Draws samples without gradients: (sample shape, batch shape, N).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients, μ + L ε with ε of the standard normal distribution: (sample shape, batch shape, N).
  /// Throws: ShapeError for a negative size.
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, −|L⁻¹ (x − μ)|² / 2 − Σ_i log L_ii − N log(2π) / 2: x (…, N), with leading axes that
  /// broadcast with the batch shape.
  /// Throws: ShapeError if x does not broadcast or has not N elements along its last axis.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, N (1 + log 2π) / 2 + Σ_i log L_ii: (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor loc_, scale_tril_;
};

/// The Kullback–Leibler divergence from q to p in nats, Σ_i log(L_q,ii / L_p,ii) + (|L_q⁻¹ L_p|² + |L_q⁻¹ (μ_p − μ_q)|²
/// − N) / 2 with the Frobenius norm of the matrix: the batch shapes broadcast.
/// Throws: ShapeError unless both are of vectors of one size and the batch shapes broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const MultivariateNormal& p, const MultivariateNormal& q, Location where = Location::here());

}  // namespace reel::distributions
