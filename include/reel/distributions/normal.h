#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Normal distributions with means μ and standard deviations σ, which broadcast to the batch shape; elements are
/// independent.
///
///     distributions::Normal q(zeros({8, 2}), ones({8, 2}));
///     Tensor z = q.rsample();                                              // (8, 2), with gradients
///     Tensor divergence = kl_divergence(q, distributions::Normal(0, 1));  // (8, 2)
///
/// Source: PyTorch's torch.distributions.Normal.
class Normal {
 public:
  /// Distributions with means `loc` and standard deviations `scale`: tensors or numbers. A number has the dtype and
  /// device of the other, if that is a tensor; two numbers are f32 on the default device. `scale` must be above 0; of
  /// a tensor this is not checked, and results are then NaN or meaningless.
  /// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast; Error for a number as
  /// `scale` that is not above 0.
  Normal(const Arg& loc, const Arg& scale);

  /// The means: (batch shape).
  const Tensor& mean() const { return loc_; }
  /// The standard deviations: (batch shape).
  const Tensor& stddev() const { return scale_; }
  /// σ²: (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return loc_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws samples without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients, μ + σ ε with ε of the standard normal distribution: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  /// Source: Kingma and Welling, Auto-encoding variational Bayes (ICLR 2014), section 2.4.
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, −((x − μ) / σ)² / 2 − log σ − log(2π) / 2: x broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, (1 + log 2π) / 2 + log σ: (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor loc_, scale_;
};

/// The Kullback–Leibler divergence from q to p in nats, log(σ_q / σ_p) + (σ_p² + (μ_p − μ_q)²) / (2 σ_q²) − 1/2: the
/// batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Normal& p, const Normal& q, Location where = Location::here());

}  // namespace reel::distributions
