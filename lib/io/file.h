#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <reel/location.h>

namespace reel::io {

/// An open file, closed when it goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// What the system says about a value of errno.
std::string words_of(int code);

/// Throws: FileError for a path with a NUL, which the system would take for its end. `failed`: "cannot open".
void check_path(const char* function, const char* failed, const std::string& path, Location where);

/// A file to read.
class Reader {
 public:
  /// Throws: FileError unless it is an ordinary file that can be opened.
  Reader(const char* function, const std::string& path, Location where);
  /// Its size when it was opened, in bytes.
  std::uint64_t size() const { return size_; }
  /// Fills the bytes from a place on. Throws: FileError where it cannot, or the file has become shorter.
  void read(std::uint64_t from, std::span<std::byte> bytes) const;

 private:
  const char* function_;
  const std::string& path_;
  Location where_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace reel::io
