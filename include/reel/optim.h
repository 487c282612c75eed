#pragma once

/// \namespace reel::optim
/// Optimisers, learning-rate schedules, moving averages of weights, and functions that clip or scale gradients.

#include <reel/optim/adadelta.h>
#include <reel/optim/adagrad.h>
#include <reel/optim/adam.h>
#include <reel/optim/adamax.h>
#include <reel/optim/adamw.h>
#include <reel/optim/clip.h>
#include <reel/optim/custom.h>
#include <reel/optim/lbfgs.h>
#include <reel/optim/lion.h>
#include <reel/optim/loss_scaler.h>
#include <reel/optim/minimise.h>
#include <reel/optim/moving_average.h>
#include <reel/optim/nadam.h>
#include <reel/optim/optimiser.h>
#include <reel/optim/plateau.h>
#include <reel/optim/radam.h>
#include <reel/optim/rmsprop.h>
#include <reel/optim/rprop.h>
#include <reel/optim/schedule.h>
#include <reel/optim/scheduler.h>
#include <reel/optim/sgd.h>
