#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

// The file of a recording, which README.md beside this file describes.

namespace reel::debug {

constexpr std::string_view recording_magic = "REELREC1";
constexpr std::size_t recording_header_bytes = 4096;
constexpr std::size_t segment_header_bytes = 16;
constexpr std::size_t most_program_bytes = 3000;
/// Where the header has the op that runs; from there, where the names of the op and of the file are.
constexpr std::size_t running_op_offset = 3072, running_op_name = 14, running_op_file = 128;
constexpr std::size_t most_running_op_bytes = running_op_file - running_op_name;

/// The types of records.
enum class RecordType : std::uint8_t { text = 1, op = 2, update = 3, name = 4, source = 5 };

/// The flags of an output.
constexpr std::uint8_t has_statistics_flag = 1, has_fingerprint_flag = 2, has_values_flag = 4, has_zero_units_flag = 8;

/// Bytes of a record that grow at the end.
class RecordBytes {
 public:
  void clear() { size_ = 0; }
  std::string_view bytes() const { return {buffer_.data(), size_}; }

  void byte(std::uint8_t value) {
    *room_for(1) = static_cast<char>(value);
    ++size_;
  }
  void varint(std::uint64_t value) { value < 0x80 ? byte(static_cast<std::uint8_t>(value)) : long_varint(value); }
  template <class T>
  void fixed(T value) {
    std::memcpy(room_for(sizeof value), &value, sizeof value);
    size_ += sizeof value;
  }
  void append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(room_for(bytes.size()), bytes.data(), bytes.size());
    size_ += bytes.size();
  }

 private:
  static constexpr std::size_t most_varint_bytes = 10;

  // Stays a call, so that `varint` is inlined: most numbers fit into a byte and need none.
  [[gnu::noinline]] void long_varint(std::uint64_t value) {
    char *begin = room_for(most_varint_bytes), *to = begin;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
    *to++ = static_cast<char>(value);
    size_ += static_cast<std::size_t>(to - begin);
  }

  // A std::string that grows byte by byte costs several times as much, and ops of 0.1 µs show it.
  char* room_for(std::size_t count) {
    if (buffer_.size() - size_ < count) buffer_.resize(2 * (size_ + count));
    return buffer_.data() + size_;
  }

  std::vector<char> buffer_;
  std::size_t size_ = 0;
};

/// Reads what RecordBytes wrote. After what is not there `failed` is true, and zeros are read.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : rest_(bytes) {}
  bool failed() const { return failed_; }
  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }

  std::uint8_t byte() {
    std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<std::uint8_t>(one[0]);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (!(next & 0x80)) return value;
    }
    failed_ = true;
    return 0;
  }
  template <class T>
  T fixed() {
    std::string_view raw = take(sizeof(T));
    T value{};
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace reel::debug
