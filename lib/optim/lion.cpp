#include <reel/optim/lion.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

Lion::Lion(std::vector<Tensor> parameters, LionOptions options, Location where) : OptimiserWith("Lion") {
  add_group(std::move(parameters), options, where);
}

void Lion::check(const LionOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_fraction(name(), "beta1", options.beta1, where);
  check_fraction(name(), "beta2", options.beta2, where);
  check_not_negative(name(), "weight decay", options.weight_decay, where);
}

UpdateStep Lion::update_step(std::size_t group, Progress&, Device device) const {
  const LionOptions& chosen = options(group);
  return UpdateStep::of<formulas::Lion>(device, {.shrink = 1 - chosen.learning_rate * chosen.weight_decay,
                                                 .step_kept = chosen.beta1,
                                                 .step_added = 1 - chosen.beta1,
                                                 .mean_kept = chosen.beta2,
                                                 .mean_added = 1 - chosen.beta2,
                                                 .rate = chosen.learning_rate});
}

}  // namespace reel::optim
