#pragma once

#include <reel/optim/adam.h>
#include <reel/optim/clip.h>
#include <reel/optim/optimiser.h>
#include <reel/optim/sgd.h>
