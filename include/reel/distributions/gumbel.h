#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Gumbel distributions with locations μ and scales β, which broadcast to the batch shape; elements are independent.
///
/// Source: PyTorch's torch.distributions.Gumbel.
class Gumbel {
 public:
  /// Distributions with locations `loc` and scales `scale`: tensors or numbers. A number has the dtype and
  /// device of the other, if that is a tensor; two numbers are f32 on the default device.
  /// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast; Error unless all
  /// scales are above 0, which is read from the device.
  Gumbel(const Arg& loc, const Arg& scale);

  /// The locations μ, which are the modes: (batch shape).
  const Tensor& loc() const { return loc_; }
  /// The scales β: (batch shape).
  const Tensor& scale() const { return scale_; }
  /// μ + γ β with γ = 0.5772…: (batch shape).
  Tensor mean(Location where = Location::here()) const;
  /// π² β² / 6: (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return loc_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws samples without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients, μ + β g with g of the standard Gumbel distribution: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, −z − e^−z − log β with z = (x − μ) / β: x broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast.
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, 1 + γ + log β: (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor loc_, scale_;
};

/// The Kullback–Leibler divergence from q to p in nats, log(β_q / β_p) + γ (r − 1) + d + e^−d Γ(1 + r) − 1 with
/// r = β_p / β_q and d = (μ_p − μ_q) / β_q: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Gumbel& p, const Gumbel& q, Location where = Location::here());

}  // namespace reel::distributions
