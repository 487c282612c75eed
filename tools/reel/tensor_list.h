#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <reel/io/safetensors.h>

/// A tensor of a file, whose elements are read only when they are asked for.
struct ListedTensor {
  std::string name;
  reel::Shape shape;
  reel::DType dtype = reel::DType::f32;
  std::function<reel::Tensor()> values;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype); }
};

/// The tensors of a file.
struct TensorList {
  std::string format;  ///< "safetensors", "npy", "npz", "PyTorch", "HDF5"
  std::string path;    ///< of the file that was read: of a folder of checkpoints, the latest snapshot
  std::vector<ListedTensor> tensors;
  reel::io::Metadata metadata;
  std::uint64_t bytes = 0;  ///< of all elements
};

/// The largest file, in bytes, of a format without an index that is read whole unasked.
constexpr std::uint64_t most_unasked_bytes = std::uint64_t{16} << 20;

/// The longest header of a safetensors file, or the largest index of several, in bytes, that is read unasked. A parsed
/// header needs some twenty times its size in memory.
constexpr std::uint64_t most_unasked_header_bytes = std::uint64_t{1} << 20;

/// Lists the tensors of a safetensors file or its index, an npy, npz, PyTorch or HDF5 file, or the latest snapshot in a
/// folder of checkpoints. Files of PyTorch and HDF5 above `most_unasked_bytes`, and headers above
/// `most_unasked_header_bytes`, are read only if `whole`.
/// Throws: Error.
TensorList list_tensors(const std::string& path, bool whole);
