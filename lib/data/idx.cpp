#include <reel/data/idx.h>

#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "../core/printable.h"
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

// The number of elements; more than `most` if there would be more.
std::uint64_t element_count(std::span<const std::int64_t> sizes, std::uint64_t most) {
  std::uint64_t count = 1;
  for (std::int64_t size : sizes) {
    if (size == 0) return 0;
    count = count > most / static_cast<std::uint64_t>(size) ? most + 1 : count * static_cast<std::uint64_t>(size);
  }
  return count;
}

}  // namespace

Tensor read_idx(const std::string& path, const IdxOptions& options, Location where) {
  std::string file = detail::read_bytes(idx_name, path, options.most_bytes, where, false);
  std::string_view bytes = file;
  bool is_idx = bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0;
  auto stored = is_idx ? static_cast<Stored>(static_cast<unsigned char>(bytes[2])) : Stored{};
  if (stored_size(stored) == 0)
    fail<io::FileError>(idx_name, where, "'{}' is no file of the IDX format: its first bytes are not 0, 0 and a type",
                        printable(path));
  auto rank = static_cast<std::size_t>(static_cast<unsigned char>(bytes[3]));
  constexpr std::size_t most_axes = 8;
  if (rank > most_axes) fail<io::FileError>(idx_name, where, "'{}' has {} axes, of at most 8", printable(path), rank);
  std::size_t header = 4 + 4 * rank;
  if (bytes.size() < header)
    fail<io::FileError>(idx_name, where, "'{}' ends within its header, at byte {}", printable(path), bytes.size());
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < rank; ++axis)
    sizes.push_back(static_cast<std::int64_t>(big_endian(bytes.substr(4 + 4 * axis, 4))));
  std::uint64_t left = bytes.size() - header, most = left / stored_size(stored);
  if (left % stored_size(stored) != 0 || element_count(sizes, most) != most)
    fail<io::FileError>(idx_name, where, "'{}' has {} bytes of elements, which is not what its header says",
                        printable(path), left);
  Shape shape(std::span<const std::int64_t>{sizes});
  DeviceGuard on_cpu(cpu);
  return elements_of(bytes.substr(header), stored, shape, where);
}

}  // namespace reel::data
