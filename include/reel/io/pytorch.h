#pragma once

#include <string>

#include <reel/io/safetensors.h>

/// \file
/// Tensors in files that PyTorch's `torch.save` has written, to read.

namespace reel::io {

/// Loads the tensors of a file that Python has written by `torch.save(model.state_dict(), "model.pt")`, to the CPU. Dicts,
/// lists and tuples may contain each other; the names of tensors are the keys and indices that lead to them, joined by
/// dots, as "model.layers.0.weight" or "state.3.exp_avg". Tensors that share a storage in PyTorch share it here, with
/// their strides. A tensor that was saved by itself has the name "tensor".
///
/// Texts, numbers and truth values in dicts are in the metadata under their dotted names: {"epoch", "3"}; the key
/// "format" is "torch.save", by which `load_into` knows that the weights are laid out as PyTorch's.
///
/// No code of the file is run: its pickle is read by a small machine of reel that knows containers, texts, numbers,
/// OrderedDict, torch.Size, tensors and parameters, and refuses all else by name. Nothing is allocated beyond what the
/// size of the file allows.
/// Throws: FileError if it cannot be read, is of a format that PyTorch wrote before version 1.6 or compressed, has
/// anything but the above, a dtype or a rank that tensors lack, or a tensor that its storage does not hold; MemoryError
/// if there is not enough memory.
/// Source: PyTorch, torch/serialization.py, `_save`.
Contents load_pytorch(const std::string& path, Location where = Location::here());

}  // namespace reel::io
