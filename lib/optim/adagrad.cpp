#include <reel/optim/adagrad.h>

#include <reel/ops/create.h>

#include "option_checks.h"
#include "update_step.h"

namespace reel::optim {

using namespace detail;

Adagrad::Adagrad(std::vector<Tensor> parameters, AdagradOptions options, Location where) : OptimiserWith("Adagrad") {
  add_group(std::move(parameters), options, where);
}

void Adagrad::check(const AdagradOptions& options, Location where) const {
  check_not_negative(name(), "learning rate", options.learning_rate, where);
  check_not_negative(name(), "rate decay", options.rate_decay, where);
  check_not_negative(name(), "weight decay", options.weight_decay, where);
  check_not_negative(name(), "initial sum", options.initial_sum, where);
  check_not_negative(name(), "epsilon", options.epsilon, where);
}

Tensor Adagrad::new_kept(const Tensor& parameter, std::size_t group, std::size_t) const {
  return full(parameter.shape(), options(group).initial_sum,
              {.dtype = parameter.dtype(), .device = parameter.device()});
}

UpdateStep Adagrad::update_step(std::size_t group, Progress& progress, Device device) const {
  const AdagradOptions& chosen = options(group);
  double slower = 1 + static_cast<double>(progress.steps - 1) * chosen.rate_decay;
  return UpdateStep::of<formulas::Adagrad>(
      device, {.decay = chosen.weight_decay, .rate = chosen.learning_rate / slower, .epsilon = chosen.epsilon});
}

}  // namespace reel::optim
