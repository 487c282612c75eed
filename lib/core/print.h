#pragma once

#include <string>

#include <reel/tensor.h>

namespace reel::detail {

/// The elements of a tensor on the CPU, formatted as by `to_string`.
std::string print(const Tensor& tensor);

}  // namespace reel::detail
