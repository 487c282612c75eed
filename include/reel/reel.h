#pragma once

/// \namespace reel
/// Eager autograd for C++20: tensors, gradient tapes, devices, errors, and all ops.

#include <reel/autocast.h>
#include <reel/cancellation.h>
#include <reel/checkpoint.h>
#include <reel/cuda.h>
#include <reel/cuda/kernel.h>
#include <reel/custom.h>
#include <reel/debug.h>
#include <reel/derivatives.h>
#include <reel/device.h>
#include <reel/distributions.h>
#include <reel/dtype.h>
#include <reel/error.h>
#include <reel/hooks.h>
#include <reel/indexing.h>
#include <reel/io.h>
#include <reel/location.h>
#include <reel/logging.h>
#include <reel/named_tensor.h>
#include <reel/nn.h>
#include <reel/ode.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/random.h>
#include <reel/shape.h>
#include <reel/sparse.h>
#include <reel/tape.h>
#include <reel/tensor.h>
#include <reel/threads.h>
#include <reel/train/fit.h>
#include <reel/train/metrics.h>
#include <reel/train/progress.h>
#include <reel/version.h>
