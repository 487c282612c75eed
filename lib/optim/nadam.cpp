#include <reel/optim/nadam.h>

#include "adam_kind.h"

namespace reel::optim {

using namespace detail;

namespace {

double momentum_at(const NAdamOptions& options, std::int64_t step) {
  return options.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step) * options.momentum_decay));
}

}  // namespace

NAdam::NAdam(std::vector<Tensor> parameters, NAdamOptions options, Location where) : OptimiserWith("NAdam") {
  add_group(std::move(parameters), options, where);
}

void NAdam::check(const NAdamOptions& options, Location where) const {
  check_adam_kind(name(), options, where);
  check_not_negative(name(), "momentum decay", options.momentum_decay, where);
}

UpdateStep NAdam::update_step(std::size_t group, Progress& progress, Device device) const {
  const NAdamOptions& chosen = options(group);
  AdamNumbers numbers = adam_numbers(chosen, progress.steps);
  double now = momentum_at(chosen, progress.steps), next = momentum_at(chosen, progress.steps + 1);
  progress.product *= now;
  numbers.gradient_factor = chosen.learning_rate * (1 - now) / (1 - progress.product);
  numbers.state_factor = chosen.learning_rate * next / (1 - progress.product * next);
  return UpdateStep::of<formulas::Adam>(device, numbers);
}

}  // namespace reel::optim
