#pragma once

#include <vector>

#include <reel/nn/module.h>

namespace reel::io {

/// What tensors that PyTorch has under its names become in a module: for each of the module's layers that keeps its
/// parameters otherwise, those of PyTorch's layer of the same kind and place are renamed, turned and put together.
/// All others stay as they are. With `converts`, what is added up of halves may come as f32.
std::vector<nn::NamedTensor> as_in(const nn::Module& module, std::vector<nn::NamedTensor> tensors, bool converts);

}  // namespace reel::io
