#include <reel/optim/sgd.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

SGD::SGD(std::vector<Tensor> parameters, SGDOptions options, Location where) : OptimiserWith("SGD") {
  add_group(std::move(parameters), options, where);
}

void SGD::check(const SGDOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_fraction(name(), "momentum", options.momentum, where);
  check_not_negative(name(), "weight decay", options.weight_decay, where);
  if (!(options.dampening >= 0 && options.dampening <= 1))
    fail<Error>(name(), where, "the dampening {} lies outside [0, 1]", options.dampening);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
    fail<Error>(name(), where, "nesterov needs a momentum above 0 and no dampening");
}

Optimiser::KeptNames SGD::kept_names(std::size_t) const { return {Kept("velocity", Kept::Need::with_momentum)}; }

UpdateStep SGD::update_step(std::size_t group, Progress& progress, Device device) const {
  const SGDOptions& chosen = options(group);
  bool first = !progress.moves;
  progress.moves |= chosen.momentum > 0;
  SGDNumbers numbers{.decay = chosen.weight_decay,
                     .momentum = chosen.momentum,
                     .added = first ? 1 : 1 - chosen.dampening,
                     // With Nesterov's step w − rate (g + μ v), else w − rate v.
                     .gradient_factor = chosen.nesterov ? 1.0 : 0.0,
                     .state_factor = chosen.nesterov ? chosen.momentum : 1,
                     .rate = chosen.learning_rate};
  if (chosen.momentum > 0) return UpdateStep::of<formulas::SgdMomentum>(device, numbers);
  return UpdateStep::of<formulas::Sgd>(device, numbers);
}

}  // namespace reel::optim
