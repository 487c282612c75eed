#pragma once

/// \namespace reel::logging
/// Logs of runs, for TensorBoard and other programs, and plots of them.

#include <reel/logging/figure.h>
#include <reel/logging/plot.h>
#include <reel/logging/writer.h>
