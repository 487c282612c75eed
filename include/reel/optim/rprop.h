#pragma once

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Rprop.
struct RpropOptions {
  /// The learning rate, the size of the first step; at least 0. Default 0.01.
  double learning_rate = 1e-2;
  /// η⁻: the factor of a step whose gradient has changed its sign, in (0, 1). Default 0.5.
  double shrink = 0.5;
  /// η⁺: the factor of a step whose gradient has kept its sign, above 1. Default 1.2.
  double grow = 1.2;
  /// The least s, above 0. Default 10⁻⁴.
  double least = 1e-4;
  /// The largest s, at least the least. Default 5000.
  double most = 5000;
};

/// Rprop without weight backtracking: each element has a step of its own, which grows while its gradient keeps its sign
/// and shrinks where it changes; for gradients of all examples, not of mini-batches:
///
///     s = min(η⁺ s, most)    where gradient · before > 0   s starts at 1, before at 0
///     s = max(η⁻ s, least)   where gradient · before < 0, and the gradient is treated as 0 then
///     w = w − rate · s · sign(gradient)
///     before = gradient
///
/// A gradient by rows is an error.
/// Throws: Error for options out of range.
/// Source: Igel and Hüsken, Improving the Rprop learning algorithm (NC 2000), algorithm iRprop⁻, which is PyTorch's
/// Rprop; its bounds 10⁻⁶ and 50 are those of rate · s.
class Rprop : public OptimiserWith<RpropOptions> {
 public:
  /// Optimises `parameters`, which are group 0.
  /// Throws: Error for options out of range, for no parameter, an undefined tensor, and one that is not a parameter or
  /// occurs twice; DTypeError unless f32 or f64; ShapeError unless contiguous.
  explicit Rprop(std::vector<Tensor> parameters, RpropOptions options = {}, Location where = Location::here());

 private:
  void check(const RpropOptions& options, Location where) const override;
  KeptNames kept_names(std::size_t) const override { return {"before", "step"}; }
  detail::UpdateStep update_step(std::size_t group, Progress& progress, Device device) const override;
};

}  // namespace reel::optim
