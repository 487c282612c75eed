#pragma once

#include <reel/nn/embedding.h>
#include <reel/nn/initialise.h>
#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/masked.h>
#include <reel/nn/module.h>
#include <reel/nn/packed.h>
