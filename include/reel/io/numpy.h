#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/location.h>
#include <reel/named_tensor.h>

/// \file
/// Arrays in NumPy's files: `.npy`, one array, and `.npz`, a zip archive of named ones. Python reads and writes them with
/// `numpy.load`, `numpy.save` and `numpy.savez`.
///
/// The dtypes f2 f4 f8, i1 i2 i4 i8, u1 and b1 are reel's f16 f32 f64, i8 i16 i32 i64, u8 and bool. bf16 is written as V2, two bytes
/// without a meaning, as ml_dtypes does, and V2 is read as bf16: `numpy.load(file).view(ml_dtypes.bfloat16)`.
/// Source: NumPy's "numpy.lib.format", versions 1.0, 2.0 and 3.0.

namespace reel::io {

/// Options of `load_npy` and `load_npz`.
struct NumpyOptions {
  /// Whether dtypes that reel lacks are converted to larger ones that hold all of their values: u2 to i32, u4 to i64. Else they are refused. Default false.
  bool widen = false;
  /// The most bytes of all compressed arrays of an `.npz` file together, once they are decompressed. Uncompressed arrays are
  /// never larger than the file. Default 4 GiB.
  std::uint64_t most_decompressed_bytes = std::uint64_t{1} << 32;
};

/// Options of `save_npz`.
struct NpzOptions {
  /// Whether the arrays are compressed (deflate), as by `numpy.savez_compressed`. Default false.
  bool compress = false;
};

/// Loads the array of an `.npy` file to the CPU. An array in Fortran order gives a tensor with such strides, and one in
/// the other byte order is converted. Whatever the file contains, nothing is allocated beyond what its own size allows.
/// Throws: FileError if the file cannot be read, breaks a rule of the format, is longer or shorter than its header says,
/// or has more than 8 axes, and for arrays of objects, text, records, complex or other numbers that reel lacks;
/// MemoryError if there is not enough memory.
Tensor load_npy(const std::string& path, const NumpyOptions& options = {}, Location where = Location::here());

/// Saves a tensor to an `.npy` file, in row-major order. A reader, even after a power cut, finds the old file or the new
/// one whole.
/// Throws: FileError, with the system's message, if the file cannot be written; Error for an undefined tensor.
void save_npy(const std::string& path, const Tensor& tensor, Location where = Location::here());

/// Loads all arrays of an `.npz` file, stored or compressed, to the CPU, named without `.npy`; it has no metadata.
/// Nothing is allocated beyond what the file's size allows, or compressed data yield.
/// Throws: FileError if the file cannot be read or is no complete zip archive, has two members of one name or one that is
/// no array, or an array that `load_npy` would refuse, and beyond `most_decompressed_bytes`; MemoryError if there is not
/// enough memory.
Contents load_npz(const std::string& path, const NumpyOptions& options = {}, Location where = Location::here());

/// Saves named tensors to an `.npz` file; a name may have slashes. A reader, even after a power cut, finds the old file
/// or the new one whole, and equal tensors give equal files.
/// Throws: FileError, with the system's message, if the file cannot be written; Error for an undefined tensor, for a name
/// that occurs twice, is not UTF-8, has a NUL, or is longer than 65531 bytes.
void save_npz(const std::string& path, std::span<const NamedTensor> tensors, const NpzOptions& options = {},
              Location where = Location::here());
/// Saves named tensors to an `.npz` file; a name may have slashes. A reader, even after a power cut, finds the old file
/// or the new one whole, and equal tensors give equal files.
/// Throws: FileError, with the system's message, if the file cannot be written; Error for an undefined tensor, for a name
/// that occurs twice, is not UTF-8, has a NUL, or is longer than 65531 bytes.
inline void save_npz(const std::string& path, const std::vector<NamedTensor>& tensors, const NpzOptions& options = {},
                     Location where = Location::here()) {
  save_npz(path, std::span<const NamedTensor>(tensors), options, where);
}

}  // namespace reel::io
