#include <reel/optim/adam.h>

#include "adam_kind.h"

namespace reel::optim {

using namespace detail;

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options, Location where) : OptimiserWith("Adam") {
  add_group(std::move(parameters), options, where);
}

void Adam::check(const AdamOptions& options, Location where) const { check_adam_kind(name(), options, where); }

Optimiser::KeptNames Adam::kept_names(std::size_t group) const {
  return {"mean", "square", {"largest_square", options(group).amsgrad}};
}

UpdateStep Adam::update_step(std::size_t group, Progress& progress, Device device) const {
  return adam_step(device, options(group).amsgrad, adam_numbers(options(group), progress.steps));
}

}  // namespace reel::optim
