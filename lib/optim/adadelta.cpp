#include <reel/optim/adadelta.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

Adadelta::Adadelta(std::vector<Tensor> parameters, AdadeltaOptions options, Location where)
    : OptimiserWith("Adadelta") {
  add_group(std::move(parameters), options, where);
}

void Adadelta::check(const AdadeltaOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_fraction(name(), "rho", options.rho, where);
  check_not_negative(name(), "epsilon", options.epsilon, where);
  check_not_negative(name(), "weight decay", options.weight_decay, where);
}

UpdateStep Adadelta::update_step(std::size_t group, Progress&, Device device) const {
  const AdadeltaOptions& chosen = options(group);
  return UpdateStep::of<formulas::Adadelta>(device, {.decay = chosen.weight_decay,
                                                     .kept = chosen.rho,
                                                     .added = 1 - chosen.rho,
                                                     .rate = chosen.learning_rate,
                                                     .epsilon = chosen.epsilon});
}

}  // namespace reel::optim
