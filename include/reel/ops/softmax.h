#pragma once

#include <reel/tensor.h>

namespace reel {

/// y_i = e^(x_i − max x) / Σ_j e^(x_j − max x) along an axis. Throws: DTypeError unless floating; ShapeError
/// for an axis that does not exist.
Tensor softmax(const Arg& x, int axis = -1);

/// y_i = x_i − max x − log Σ_j e^(x_j − max x) along an axis. Throws: as softmax.
Tensor log_softmax(const Arg& x, int axis = -1);

}  // namespace reel
