#include <reel/optim/radam.h>

#include "adam_kind.h"

namespace reel::optim {

using namespace detail;

RAdam::RAdam(std::vector<Tensor> parameters, RAdamOptions options, Location where) : OptimiserWith("RAdam") {
  add_group(std::move(parameters), options, where);
}

void RAdam::check(const RAdamOptions& options, Location where) const { check_adam_kind(name(), options, where); }

UpdateStep RAdam::update_step(std::size_t group, Progress& progress, Device device) const {
  const RAdamOptions& chosen = options(group);
  AdamNumbers numbers = adam_numbers(chosen, progress.steps);
  auto steps = static_cast<double>(progress.steps);
  double most = 2 / (1 - chosen.beta2) - 1, corrected = correction(chosen.beta2, progress.steps);
  double length = most - 2 * steps * (1 - corrected) / corrected;
  if (length > 5) {
    numbers.state_factor *=
        std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length) * corrected);
    numbers.root_factor = 1;
  } else {
    // Makes the divisor 1.
    numbers.root_factor = 0;
    numbers.epsilon = 1;
  }
  return UpdateStep::of<formulas::Adam>(device, numbers);
}

}  // namespace reel::optim
