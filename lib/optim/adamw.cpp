#include <reel/optim/adamw.h>

#include "adam_kind.h"

namespace reel::optim {

using namespace detail;

AdamW::AdamW(std::vector<Tensor> parameters, AdamWOptions options, Location where) : OptimiserWith("AdamW") {
  add_group(std::move(parameters), options, where);
}

void AdamW::check(const AdamWOptions& options, Location where) const { check_adam_kind(name(), options, where); }

Optimiser::KeptNames AdamW::kept_names(std::size_t group) const {
  return {"mean", "square", {"largest_square", options(group).amsgrad}};
}

UpdateStep AdamW::update_step(std::size_t group, Progress& progress, Device device) const {
  const AdamWOptions& chosen = options(group);
  AdamNumbers numbers = adam_numbers(chosen, progress.steps);
  numbers.decay = 0;
  numbers.shrink = 1 - chosen.learning_rate * chosen.weight_decay;
  return adam_step(device, chosen.amsgrad, numbers);
}

}  // namespace reel::optim
