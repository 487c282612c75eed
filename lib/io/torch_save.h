#pragma once

namespace reel::io {

/// The metadata key that names the program whose layout the tensors have. Source: safetensors, where Python's writers
/// use "pt", "tf", "flax" or "mlx".
inline constexpr const char* format_key = "format";
/// Its value for files of `torch.save`, which are laid out as PyTorch's for certain.
inline constexpr const char* torch_save_format = "torch.save";

}  // namespace reel::io
