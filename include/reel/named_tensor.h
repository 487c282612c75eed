#pragma once

#include <string>

#include <reel/tensor.h>

namespace reel {

/// A tensor and its name, as modules list their parameters and files their contents.
struct NamedTensor {
  std::string name;  ///< such as "cell.W_h": the names of the modules around a parameter, and its own
  Tensor tensor;     ///< the tensor
};

}  // namespace reel
