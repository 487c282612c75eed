#pragma once

#include <cstdint>
#include <string>

#include <reel/tensor.h>

namespace reel::data {

/// Options of `read_idx`.
struct IdxOptions {
  /// The most bytes of a compressed file's contents. Default 4 GiB.
  std::uint64_t most_bytes = std::uint64_t{1} << 32;
};

/// Reads an array in the IDX format, such as the images (N, 28, 28) and labels (N) of MNIST, plain or compressed with
/// gzip: a tensor on the CPU of u8, i8, i16, i32, f32 or f64. The tensor is allocated when the file is known to have its
/// elements.
/// Throws: io::FileError if the file cannot be read, has another format, another size than its header says, or more than
/// 8 axes; MemoryError if there is not enough memory.
/// Source: LeCun, Cortes and Burges, The MNIST database of handwritten digits, "File formats".
Tensor read_idx(const std::string& path, const IdxOptions& options = {}, Location where = Location::here());

}  // namespace reel::data
