#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reel::logging {

/// Writes a message in protobuf's wire format. Source: protobuf.dev, "Encoding".
class Message {
 public:
  /// Appends an integer, as int32, int64, enum or bool; a negative one as ten bytes.
  Message& integer(std::uint32_t field, std::int64_t value);
  Message& f32(std::uint32_t field, float value);
  Message& f64(std::uint32_t field, double value);
  /// Appends numbers as `repeated double`, packed.
  Message& f64s(std::uint32_t field, std::span<const double> values);
  /// Appends a string or bytes.
  Message& text(std::uint32_t field, std::string_view bytes);
  /// Appends a message.
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.bytes_); }
  /// Appends the fields of another message.
  Message& fields(const Message& other) {
    bytes_ += other.bytes_;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(std::uint32_t field, std::uint32_t wire) { varint(std::uint64_t{field} << 3 | wire); }
  void varint(std::uint64_t value);
  template <class T>
  void fixed(T value);

  std::string bytes_;
};

/// An exception: bytes are no message of the expected kind. `what()` is a predicate of them: "end within a field".
class WireError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads the fields of a message one after another; what it returns refers to the message's bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  /// Reads the next field; false at the end. Throws: WireError for bytes that are no message.
  bool next();
  /// The number of the field that `next` has read.
  std::uint32_t field() const { return field_; }
  /// The value of an integer field. Throws: WireError for a field of another kind.
  std::int64_t integer() const;
  /// The value of a float field. Throws: WireError for a field of another kind.
  float f32() const;
  /// The value of a double field. Throws: WireError for a field of another kind.
  double f64() const;
  /// The bytes of a string, a message or packed numbers. Throws: WireError for a field of another kind.
  std::string_view text() const;

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t bytes);
  void expect(std::uint32_t wire) const;

  std::string_view rest_, text_;
  std::uint32_t field_ = 0, wire_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace reel::logging
