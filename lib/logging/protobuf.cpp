#include "protobuf.h"

#include <bit>
#include <cstddef>

namespace reel::logging {

namespace {

// The wire types.
constexpr std::uint32_t varint_wire = 0, f64_wire = 1, bytes_wire = 2, f32_wire = 5;

}  // namespace

void Message::varint(std::uint64_t value) {
  for (; value >= 128; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
  bytes_.push_back(static_cast<char>(value));
}

template <class T>
void Message::fixed(T value) {
  char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  bytes_.append(bytes, sizeof(T));
}

Message& Message::integer(std::uint32_t field, std::int64_t value) {
  key(field, varint_wire);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::f32(std::uint32_t field, float value) {
  key(field, f32_wire);
  fixed(std::bit_cast<std::uint32_t>(value));
  return *this;
}

Message& Message::f64(std::uint32_t field, double value) {
  key(field, f64_wire);
  fixed(std::bit_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::f64s(std::uint32_t field, std::span<const double> values) {
  key(field, bytes_wire);
  varint(values.size() * 8);
  for (double value : values) fixed(std::bit_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::text(std::uint32_t field, std::string_view bytes) {
  key(field, bytes_wire);
  varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

std::uint64_t Fields::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    if (i == rest_.size()) throw WireError("end within a number");
    auto byte = static_cast<unsigned char>(rest_[i]);
    value |= std::uint64_t{byte & 127u} << (7 * i);
    if (byte < 128) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  throw WireError("have a number of more than 64 bits");
}

std::uint64_t Fields::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) throw WireError("end within a number");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  rest_.remove_prefix(bytes);
  return value;
}

bool Fields::next() {
  if (rest_.empty()) return false;
  std::uint64_t key = varint();
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) throw WireError("have a field of a number that no field has");
  field_ = static_cast<std::uint32_t>(key >> 3);
  wire_ = static_cast<std::uint32_t>(key & 7);
  if (wire_ == varint_wire) {
    number_ = varint();
  } else if (wire_ == f64_wire || wire_ == f32_wire) {
    number_ = fixed(wire_ == f64_wire ? 8 : 4);
  } else if (wire_ == bytes_wire) {
    std::uint64_t size = varint();
    if (size > rest_.size()) throw WireError("end within a field");
    text_ = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(text_.size());
  } else {
    throw WireError("have a field of a kind that is not in use");
  }
  return true;
}

void Fields::expect(std::uint32_t wire) const {
  if (wire_ != wire) throw WireError("have a field of another kind than it must be");
}

std::int64_t Fields::integer() const {
  expect(varint_wire);
  return static_cast<std::int64_t>(number_);
}

float Fields::f32() const {
  expect(f32_wire);
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}

double Fields::f64() const {
  expect(f64_wire);
  return std::bit_cast<double>(number_);
}

std::string_view Fields::text() const {
  expect(bytes_wire);
  return text_;
}

}  // namespace reel::logging
