#pragma once

#include <reel/checkpoint.h>
#include <reel/custom.h>
#include <reel/debug.h>
#include <reel/device.h>
#include <reel/dtype.h>
#include <reel/error.h>
#include <reel/indexing.h>
#include <reel/location.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/random.h>
#include <reel/shape.h>
#include <reel/sparse.h>
#include <reel/tape.h>
#include <reel/tensor.h>
