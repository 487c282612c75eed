#pragma once

#include <reel/optim/adadelta.h>
#include <reel/optim/adagrad.h>
#include <reel/optim/adam.h>
#include <reel/optim/adamax.h>
#include <reel/optim/adamw.h>
#include <reel/optim/clip.h>
#include <reel/optim/lion.h>
#include <reel/optim/nadam.h>
#include <reel/optim/optimiser.h>
#include <reel/optim/radam.h>
#include <reel/optim/rmsprop.h>
#include <reel/optim/sgd.h>
