#pragma once

#include <reel/nn/embedding.h>
#include <reel/nn/initialise.h>
#include <reel/nn/linear.h>
#include <reel/nn/lstm.h>
#include <reel/nn/masked.h>
#include <reel/nn/module.h>
#include <reel/nn/module_list.h>
#include <reel/nn/packed.h>
#include <reel/nn/sequential.h>
#include <reel/nn/summary.h>
