#include <reel/optim/rmsprop.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

RMSprop::RMSprop(std::vector<Tensor> parameters, RMSpropOptions options, Location where) : OptimiserWith("RMSprop") {
  add_group(std::move(parameters), options, where);
}

void RMSprop::check(const RMSpropOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_fraction(name(), "alpha", options.alpha, where);
  check_not_negative(name(), "epsilon", options.epsilon, where);
  check_not_negative(name(), "weight decay", options.weight_decay, where);
  check_fraction(name(), "momentum", options.momentum, where);
}

Optimiser::KeptNames RMSprop::kept_names(std::size_t group) const {
  return {"square", {"mean", options(group).centred}, {"velocity", Kept::Need::with_momentum}};
}

UpdateStep RMSprop::update_step(std::size_t group, Progress& progress, Device device) const {
  const RMSpropOptions& chosen = options(group);
  progress.moves |= chosen.momentum > 0;
  RMSpropNumbers numbers{.decay = chosen.weight_decay,
                         .kept = chosen.alpha,
                         .added = 1 - chosen.alpha,
                         .momentum = chosen.momentum,
                         .rate = chosen.learning_rate,
                         .epsilon = chosen.epsilon};
  bool moves = chosen.momentum > 0;
  if (chosen.centred && moves) return UpdateStep::of<formulas::RmspropCentredMomentum>(device, numbers);
  if (chosen.centred) return UpdateStep::of<formulas::RmspropCentred>(device, numbers);
  if (moves) return UpdateStep::of<formulas::RmspropMomentum>(device, numbers);
  return UpdateStep::of<formulas::Rmsprop>(device, numbers);
}

}  // namespace reel::optim
