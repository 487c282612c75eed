#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// The file of a recording, which README.md beside this file describes.

namespace reel::debug {

constexpr std::string_view recording_magic = "REELREC1";
constexpr std::size_t recording_header_bytes = 4096;
constexpr std::size_t segment_header_bytes = 16;
constexpr std::size_t most_program_bytes = 3000;

/// The types of records.
enum class RecordType : std::uint8_t { text = 1, op = 2, update = 3, name = 4 };

/// The flags of an output.
constexpr std::uint8_t has_statistics_flag = 1, has_fingerprint_flag = 2, has_values_flag = 4;

/// Bytes of a record that grow at the end.
class RecordBytes {
 public:
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

  void byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  template <class T>
  void fixed(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
  }
  void append(std::string_view bytes) { bytes_.append(bytes); }

 private:
  std::string bytes_;
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
