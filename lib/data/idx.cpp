#include <reel/data/idx.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include <reel/io/safetensors.h>
#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../io/compressed.h"
#include "../io/element_layout.h"
#include "text_lines.h"

namespace reel::data {

using detail::fail;
using detail::printable;

namespace {

constexpr const char* idx_name = "data::read_idx";

// How an element is stored.
enum class Stored : unsigned char { u8 = 0x08, i8 = 0x09, i16 = 0x0B, i32 = 0x0C, f32 = 0x0D, f64 = 0x0E };

// The bytes of an element; 0 for a type that the format does not have.
std::size_t stored_size(Stored stored) {
  switch (stored) {
    case Stored::u8:
    case Stored::i8: return 1;
    case Stored::i16: return 2;
    case Stored::i32:
    case Stored::f32: return 4;
    case Stored::f64: return 8;
  }
  return 0;
}

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// The elements, whose bytes come highest first, as a tensor of T.
template <class T>
Tensor elements_of(std::string_view bytes, const Shape& shape, Location where) {
  Tensor x = zeros(shape, {.dtype = dtype_of<T>()}, where);
  auto values = x.write<T>();
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    std::array<char, sizeof(T)> element;
    for (std::size_t k = 0; k < sizeof(T); ++k)
      element[std::endian::native == std::endian::little ? sizeof(T) - 1 - k : k] = bytes[i * sizeof(T) + k];
    std::memcpy(&values[i], element.data(), sizeof(T));
  }
  return x;
}

Tensor elements_of(std::string_view bytes, Stored stored, const Shape& shape, Location where) {
  switch (stored) {
    case Stored::u8: return elements_of<std::uint8_t>(bytes, shape, where);
    case Stored::i8: return elements_of<std::int8_t>(bytes, shape, where);
    case Stored::i16: return elements_of<std::int16_t>(bytes, shape, where);
    case Stored::i32: return elements_of<std::int32_t>(bytes, shape, where);
    case Stored::f32: return elements_of<float>(bytes, shape, where);
    case Stored::f64: return elements_of<double>(bytes, shape, where);
  }
  return {};
}

constexpr std::size_t most_axes = 8, most_header_bytes = 4 + 4 * most_axes;

struct Header {
  Stored stored;
  Shape shape;
  std::uint64_t bytes, elements_bytes;
};

// The header of contents that begin with these bytes.
Header header_of(std::string_view bytes, const std::string& path, Location where) {
  bool is_idx = bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0;
  auto stored = is_idx ? static_cast<Stored>(static_cast<unsigned char>(bytes[2])) : Stored{};
  if (stored_size(stored) == 0)
    fail<io::FileError>(idx_name, where, "'{}' is no file of the IDX format: its first bytes are not 0, 0 and a type",
                        printable(path));
  auto rank = static_cast<std::size_t>(static_cast<unsigned char>(bytes[3]));
  if (rank > most_axes) fail<io::FileError>(idx_name, where, "'{}' has {} axes, of at most 8", printable(path), rank);
  Header header{stored, {}, 4 + 4 * rank, 0};
  if (bytes.size() < header.bytes)
    fail<io::FileError>(idx_name, where, "'{}' ends within its header, at byte {}", printable(path), bytes.size());
  for (std::size_t at = 4; at < header.bytes; at += 4)
    header.shape.push_back(static_cast<std::int64_t>(big_endian(bytes.substr(at, 4))));
  // Sizes that overflow are those of no file.
  auto count = static_cast<std::uint64_t>(io::element_count(header.shape).value_or(std::int64_t{1} << 59));
  header.elements_bytes = stored_size(stored) * count;
  return header;
}

}  // namespace

Tensor read_idx(const std::string& path, const IdxOptions& options, Location where) {
  std::string file = detail::read_bytes(idx_name, path, options.most_bytes, where, false);
  bool is_compressed = detail::is_gzip(file);
  // A few compressed bytes can be many that are no elements.
  std::string begin = is_compressed ? detail::gunzip(file, most_header_bytes, path, where, true) : "";
  Header header = header_of(is_compressed ? begin : file, path, where);
  if (is_compressed)
    file = detail::gunzip(file, std::min(options.most_bytes, header.bytes + header.elements_bytes), path, where);
  std::string_view elements = std::string_view(file).substr(header.bytes);
  if (elements.size() != header.elements_bytes)
    fail<io::FileError>(idx_name, where, "'{}' has {} bytes of elements, which is not what its header says",
                        printable(path), elements.size());
  DeviceGuard on_cpu(cpu);
  return elements_of(elements, header.stored, header.shape, where);
}

}  // namespace reel::data
