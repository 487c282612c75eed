#pragma once

#include <string>

#include <reel/location.h>

namespace reel::io {

/// The metadata key that names the program whose layout the tensors have. Source: safetensors, where Python's writers
/// use "pt", "tf", "flax" or "mlx".
inline constexpr const char* format_key = "format";
/// Its value for files of `torch.save`, which are laid out as PyTorch's for certain.
inline constexpr const char* torch_save_format = "torch.save";

/// Returns true if a file begins as one of torch.save, of any version. Throws: FileError if it cannot be read.
bool is_torch_save(const std::string& path, Location where);

}  // namespace reel::io
