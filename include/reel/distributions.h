#pragma once

/// \namespace reel::distributions
/// Probability distributions: samples, logarithms of probabilities, entropies and divergences, with gradients.

#include <reel/distributions/bernoulli.h>
#include <reel/distributions/beta.h>
#include <reel/distributions/categorical.h>
#include <reel/distributions/dirichlet.h>
#include <reel/distributions/gamma.h>
#include <reel/distributions/gumbel.h>
#include <reel/distributions/kl_divergence.h>
#include <reel/distributions/multivariate_normal.h>
#include <reel/distributions/normal.h>
#include <reel/distributions/poisson.h>
#include <reel/distributions/uniform.h>
