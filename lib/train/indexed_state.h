#pragma once

#include <memory>

#include <reel/optim/moving_average.h>
#include <reel/optim/optimiser.h>

#include "checkpoint_object.h"

// Optimisers and moving averages name the tensors of their states by index, "7.mean". In a file they have the names of
// the parameters, so that a model with other layers, or in another order, gets what fits it.

namespace reel::detail {

/// The object of an optimiser.
std::shared_ptr<CheckpointObject> saved_optimiser(optim::Optimiser& optimiser);
/// The object of a moving average.
std::shared_ptr<CheckpointObject> saved_average(optim::MovingAverage& average);

}  // namespace reel::detail
