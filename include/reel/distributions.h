#pragma once

/// \namespace reel::distributions
/// Probability distributions: samples, logarithms of probabilities, entropies and divergences, with gradients.

#include <reel/distributions/bernoulli.h>
#include <reel/distributions/categorical.h>
#include <reel/distributions/normal.h>
