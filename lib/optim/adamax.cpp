#include <reel/optim/adamax.h>

#include "adam_kind.h"

namespace reel::optim {

using namespace detail;

Adamax::Adamax(std::vector<Tensor> parameters, AdamaxOptions options, Location where) : OptimiserWith("Adamax") {
  add_group(std::move(parameters), options, where);
}

void Adamax::check(const AdamaxOptions& options, Location where) const { check_adam_kind(name(), options, where); }

UpdateStep Adamax::update_step(std::size_t group, Progress& progress, Device device) const {
  const AdamaxOptions& chosen = options(group);
  return UpdateStep::of<formulas::Adamax>(device,
                                          {.decay = chosen.weight_decay,
                                           .mean_kept = chosen.beta1,
                                           .mean_added = 1 - chosen.beta1,
                                           .largest_kept = chosen.beta2,
                                           .rate = chosen.learning_rate / correction(chosen.beta1, progress.steps),
                                           .epsilon = chosen.epsilon});
}

}  // namespace reel::optim
