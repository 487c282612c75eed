#pragma once

/// \file
/// Training on several processes, in a library of its own, `libreel_dist.so`: link with `reel_dist` of pkg-config, or
/// `reel::dist` of CMake. `reel.h` does not include it.

#include <reel/dist/checkpoint.h>
#include <reel/dist/data_parallel.h>
#include <reel/dist/group.h>
#include <reel/dist/run.h>
#include <reel/dist/sharded_embedding.h>
