#pragma once

/// \namespace reel::train
/// Parts of a training loop beside the optimiser: `fit` and what it takes and gives, metrics, a progress bar, checkpoints
/// from which a run resumes, the best weights so far, and an orderly end on a signal.

// reel.h does not include this header: in a program that has a function `train` of its own, and `using namespace reel`,
// the name of the namespace would make the function's ambiguous.

#include <reel/train/best_weights.h>
#include <reel/train/checkpoint.h>
#include <reel/train/fit.h>
#include <reel/train/interruption.h>
#include <reel/train/metrics.h>
#include <reel/train/progress.h>

namespace reel::train {

// fit.h, metrics.h and progress.h are parts of reel.h under their old names, nn::fit and so on, until the next version:
// their declarations are in an inline namespace of reel::nn, and move here with it.
using namespace nn::training;

}  // namespace reel::train
