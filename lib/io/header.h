#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/shape.h>

namespace reel::io {

/// How a safetensors file begins: the count of the header's bytes.
constexpr std::uint64_t count_bytes = 8;
/// The most bytes that a header may have.
constexpr std::uint64_t most_header_bytes = 100'000'000;
/// What stands in place of a tensor's name before the words about the file.
constexpr const char* metadata_name = "__metadata__";

/// A tensor, as the header describes it. Bytes are counted from the end of the header.
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

/// The format's name of a dtype.
std::string_view format_name(DType dtype);
/// The dtype of that name, if tensors have it.
std::optional<DType> dtype_of(std::string_view format_name);

/// Reads a header behind which there are so many bytes, and checks every rule of the format.
/// Throws: std::runtime_error with half a sentence about the file: "has a tensor …".
Header parsed(std::string_view text, std::uint64_t elements);

/// The header's text, filled up with spaces so that what follows is aligned to eight bytes.
/// Throws: std::runtime_error for what is not UTF-8.
std::string text_of(const Header& header);

}  // namespace reel::io
