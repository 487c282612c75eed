#pragma once

#include <span>

#include "../writer.h"

namespace reel::io::onnx {

/// The ops of one family that ONNX has counterparts of.
std::span<const Operator> elementwise_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> index_operators();
std::span<const Operator> product_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> normalise_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> recurrent_operators();

}  // namespace reel::io::onnx
