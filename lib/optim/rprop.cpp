#include <reel/optim/rprop.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

Rprop::Rprop(std::vector<Tensor> parameters, RpropOptions options, Location where) : OptimiserWith("Rprop") {
  add_group(std::move(parameters), options, where);
}

void Rprop::check(const RpropOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  if (!(options.shrink > 0 && options.shrink < 1))
    fail<Error>(name(), where, "the factor shrink {} lies outside (0, 1)", options.shrink);
  if (!(options.grow > 1)) fail<Error>(name(), where, "the factor grow {} is not above 1", options.grow);
  if (!(options.least > 0 && options.least <= options.most))
    fail<Error>(name(), where, "the bounds {} and {} of the steps are not positive and in order", options.least,
                options.most);
}

UpdateStep Rprop::update_step(std::size_t group, Progress& progress, Device device) const {
  const RpropOptions& chosen = options(group);
  return UpdateStep::of<formulas::Rprop>(device, {.rate = chosen.learning_rate,
                                                  .shrink = chosen.shrink,
                                                  .grow = chosen.grow,
                                                  .least = chosen.least,
                                                  .most = chosen.most,
                                                  .first = progress.steps == 1 ? 1.0 : 0.0});
}

}  // namespace reel::optim
