#pragma once

#include <vector>

#include <reel/nn/module.h>

namespace reel::io {

/// Converts tensors under PyTorch's names to those of a module: for each layer of the module whose parameters have
/// another form, the parameters of PyTorch's layer of the same kind and name are renamed, transposed and joined. All
/// others stay as they are. With `converts`, sums of halves may have dtype f32.
std::vector<NamedTensor> as_in(const nn::Module& module, std::vector<NamedTensor> tensors, bool converts);

/// Converts a module's tensors, each under all of its names, to the names and forms of PyTorch's layers: the reverse of
/// `as_in`.
std::vector<NamedTensor> as_in_pytorch(const nn::Module& module, const std::vector<NamedTensor>& tensors);

}  // namespace reel::io
