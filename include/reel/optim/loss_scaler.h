#pragma once

#include <cstdint>
#include <vector>

#include <reel/optim/optimiser.h>
#include <reel/tensor.h>

namespace reel::optim {

/// Options of LossScaler.
struct LossScalerOptions {
  /// The initial scale, in [2⁻¹²⁶, 2¹²⁷], which later scales never leave. Default 65536.
  double scale = 65536;
  /// The factor of the scale after `growth_interval` steps in a row with finite gradients; above 1. Default 2.
  double growth = 2;
  /// The factor of the scale after a step with gradients that are not finite; in (0, 1). Default 0.5.
  double backoff = 0.5;
  /// Steps in a row with finite gradients after which the scale grows; at least 1. Default 2000.
  std::int64_t growth_interval = 2000;
};

/// Keeps gradients of f16 within its range, in which numbers below 6 · 10⁻⁸ vanish: the loss is multiplied by a
/// scale before it is differentiated, and the parameters' gradients are divided by it before the step. A scale that is
/// too large makes them infinite; such a step is left out, and the scale lowered.
///
///     Tape tape;
///     Tensor loss;
///     {
///       auto scope = autocast(f16);
///       loss = cross_entropy(model(x), y);
///     }
///     tape.backward(scaler.scale(loss));
///     scaler.unscale(adam);                                      // only where gradients are looked at, as here
///     optim::clip_grad_norm(adam.parameters(), 1.0);
///     scaler.step(adam);
///     scaler.update();
///     adam.zero_grad();
///
/// Source: Micikevicius et al., Mixed precision training (ICLR 2018), section 3.2, as PyTorch's GradScaler has it.
class LossScaler {
 public:
  /// Starts with the given scale. Throws: Error for options out of range.
  explicit LossScaler(LossScalerOptions options = {}, Location where = Location::here());

  /// loss · scale, in f32 if the loss is bf16 or f16. Throws: DTypeError unless floating.
  Tensor scale(const Arg& loss) const;
  /// Divides the gradients of the optimiser's parameters by the scale, and records whether all are finite.
  /// Throws: Error if that was done already since the last `update`.
  void unscale(Optimiser& optimiser, Location where = Location::here());
  /// Makes a step of the optimiser if all gradients are finite, and returns whether it has; unscales them first, unless
  /// that was done.
  /// Throws: Error for a second step since the last `update`, and for a parameter that its module has replaced.
  bool step(Optimiser& optimiser, Location where = Location::here());
  /// Adapts the scale, after the steps of all optimisers. Throws: Error if there was no step since the last update.
  void update(Location where = Location::here());

  /// The present scale.
  double current_scale() const { return scale_; }
  /// The number of updates in a row with finite gradients since the scale last changed.
  std::int64_t growth_progress() const { return finite_updates_; }
  /// Restores what `current_scale()` and `growth_progress()` gave.
  /// Throws: Error for a scale out of range, or progress below 0.
  void restore(double scale, std::int64_t growth_progress, Location where = Location::here());

 private:
  // An optimiser whose gradients have been unscaled since the last update.
  struct Seen {
    const Optimiser* optimiser;
    bool finite, stepped;
  };
  Seen* find(const Optimiser& optimiser);

  LossScalerOptions options_;
  double scale_;
  std::int64_t finite_updates_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace reel::optim
