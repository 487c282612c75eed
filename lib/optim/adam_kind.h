#pragma once

#include <cmath>

#include "option_checks.h"
#include "update_step.h"

// Common parts of Adam, AdamW, NAdam and RAdam: the state m and v, and the loop over it.

namespace reel::detail {

/// Throws: Error for a learning rate, β₁, β₂, ε or weight decay out of range.
template <class Options>
void check_adam_kind(const char* optimiser, const Options& options, Location where) {
  check_not_negative(optimiser, "learning rate", options.learning_rate, where);
  check_fraction(optimiser, "beta1", options.beta1, where);
  check_fraction(optimiser, "beta2", options.beta2, where);
  check_not_negative(optimiser, "epsilon", options.epsilon, where);
  check_not_negative(optimiser, "weight decay", options.weight_decay, where);
}

/// 1 − βᵗ, by which an exponential mean that started at 0 is divided.
inline double correction(double beta, std::int64_t steps) { return 1 - std::pow(beta, static_cast<double>(steps)); }

/// The numbers of Adam at step t.
template <class Options>
AdamNumbers adam_numbers(const Options& options, std::int64_t steps) {
  return {.decay = options.weight_decay,
          .shrink = 1,
          .mean_kept = options.beta1,
          .mean_added = 1 - options.beta1,
          .square_kept = options.beta2,
          .square_added = 1 - options.beta2,
          .gradient_factor = 0,
          .state_factor = options.learning_rate / correction(options.beta1, steps),
          .root_factor = 1 / std::sqrt(correction(options.beta2, steps)),
          .epsilon = options.epsilon};
}

/// The update step of Adam and AdamW.
inline UpdateStep adam_step(Device device, bool amsgrad, const AdamNumbers& numbers) {
  if (amsgrad) return UpdateStep::of<formulas::AmsGrad>(device, numbers);
  return UpdateStep::of<formulas::Adam>(device, numbers);
}

}  // namespace reel::detail
