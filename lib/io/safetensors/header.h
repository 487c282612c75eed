#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/shape.h>

namespace reel::io {

class Reader;

/// The size in bytes of the integer at the beginning of a safetensors file, which holds the header's size.
constexpr std::uint64_t count_bytes = 8;
/// The largest allowed size of a header in bytes.
constexpr std::uint64_t most_header_bytes = 100'000'000;
/// The key of the file's metadata, in place of a tensor's name.
constexpr const char* metadata_name = "__metadata__";

/// A tensor's description in the header. Offsets are counted in bytes from the end of the header.
struct Described {
  std::string name;
  DType dtype;
  Shape shape;
  std::uint64_t begin, end;
};

struct Header {
  std::vector<Described> tensors;
  Metadata metadata;
};

/// The format's name for a dtype.
std::string format_name(DType dtype);
/// The dtype of that name, if tensors can have it.
std::optional<DType> dtype_of(std::string_view name);

/// Parses a header that is followed by `elements` bytes, and checks every rule of the format.
/// Throws: std::runtime_error with a predicate about the file: "has a tensor …".
Header parsed(std::string_view text, std::uint64_t elements);

/// Reads the header of a file. `begin`: the offset of the elements. Throws: FileError, in the name of `function`.
Header read_header(const char* function, const Reader& file, const std::string& path, Location where,
                   std::uint64_t& begin);

/// The header's text, padded with spaces so that the data after it is aligned to eight bytes.
/// Throws: std::runtime_error for text that is not UTF-8.
std::string text_of(const Header& header);

}  // namespace reel::io
