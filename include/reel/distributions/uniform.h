#pragma once

#include <reel/ops/random.h>
#include <reel/tensor.h>

namespace reel::distributions {

/// Uniform distributions on intervals [low, high), which broadcast to the batch shape; elements are independent.
///
/// Source: PyTorch's torch.distributions.Uniform.
class Uniform {
 public:
  /// Distributions on [low, high): tensors or numbers. A number has the dtype and device of the other, if that is a
  /// tensor; two numbers are f32 on the default device.
  /// Throws: DTypeError unless both have one floating dtype; ShapeError if they do not broadcast; Error unless low <
  /// high everywhere, which is read from the device.
  Uniform(const Arg& low, const Arg& high);

  /// The lower bounds: (batch shape).
  const Tensor& low() const { return low_; }
  /// The upper bounds: (batch shape).
  const Tensor& high() const { return high_; }
  /// (low + high) / 2: (batch shape).
  Tensor mean(Location where = Location::here()) const;
  /// (high − low)² / 12: (batch shape).
  Tensor variance(Location where = Location::here()) const;
  /// The shape of the distributions.
  Shape batch_shape() const { return low_.shape(); }
  /// The shape of one sample of one distribution: ().
  Shape event_shape() const { return {}; }

  /// Draws samples without gradients: (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor sample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// Draws samples with gradients, low + (high − low) u with u uniform on [0, 1): (sample shape, batch shape).
  /// Throws: ShapeError for a negative size.
  Tensor rsample(const Shape& sample_shape = {}, DrawOptions options = {}, Location where = Location::here()) const;
  /// The logarithm of the density, −log(high − low), and −∞ at x = high: x broadcasts with the batch shape.
  /// Throws: ShapeError if x does not broadcast; Error for a value outside [low, high].
  Tensor log_prob(const Arg& x) const;
  /// The entropy in nats, log(high − low): (batch shape).
  Tensor entropy(Location where = Location::here()) const;

 private:
  Tensor low_, high_;
};

/// The Kullback–Leibler divergence from q to p in nats, log((high_q − low_q) / (high_p − low_p)), and ∞ unless q's
/// interval contains p's: the batch shapes broadcast.
/// Throws: ShapeError if the batch shapes do not broadcast.
/// Source: PyTorch's torch.distributions.kl_divergence.
Tensor kl_divergence(const Uniform& p, const Uniform& q, Location where = Location::here());

}  // namespace reel::distributions
