#pragma once

#include <span>
#include <vector>

#include <reel/nn/module.h>

namespace reel::io {

/// Names the tensors of a file of Keras by layer and weight: "model_weights/dense/dense/kernel:0" of Keras 2 becomes
/// "dense.kernel", and "layers/dense/vars/0" of Keras 3 "dense.0". States of optimisers and of generators are left out.
std::vector<NamedTensor> named_as_layers(std::span<const NamedTensor> tensors);

/// Converts tensors under Keras's names of weights, or their indices within a layer, to those of a module: for each layer
/// of the module that Keras has, too, they are renamed, and their axes and gates are put in reel's order.
std::vector<NamedTensor> from_keras_layers(const nn::Module& module, std::vector<NamedTensor> tensors);

}  // namespace reel::io
