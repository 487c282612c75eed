#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <reel/dtype.h>
#include <reel/shape.h>

namespace reel::io {

/// The kind of an array's elements in a file. Kinds that no tensor has are converted.
struct NpyElement {
  DType dtype;         ///< of the tensor
  std::size_t bytes;   ///< of an element in the file
  std::string name;    ///< NumPy's: "f4"
  bool is_big_endian;  ///< in the file

  /// True if elements in the file have another size than in the tensor.
  bool is_widened() const { return bytes != size_of(dtype); }
};

/// The contents of an `.npy` file's header.
struct NpyHeader {
  NpyElement element;
  Shape shape;
  bool is_fortran = false;
  std::uint64_t elements_bytes = 0;  ///< of all elements in the file
};

/// The bytes with which each file begins: a signature and the version.
constexpr std::size_t npy_signature_bytes = 8;

/// The size in bytes of the integer that holds the header's size. `signature` has npy_signature_bytes.
/// Throws: std::runtime_error with a predicate about the file for another signature or version.
std::size_t npy_count_bytes(std::string_view signature);

/// The longest header that is read, in bytes.
constexpr std::uint64_t most_npy_header_bytes = 1 << 16;

/// Parses a header, the text of a Python dictionary. Throws: std::runtime_error with a predicate about the file.
NpyHeader parsed_npy(std::string_view text, bool widens);

/// The bytes before the elements of a contiguous array in a file of version 1.0, a multiple of 64.
std::string npy_prelude(DType dtype, const Shape& shape);

}  // namespace reel::io
