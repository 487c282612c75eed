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
  /// Closes it now. Returns whether that went well, which for a file on a network is where its writing may fail.
  bool close();

 private:
  int number_ = -1;
};

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

/// A file that comes into being all at once: what is written goes into another one beside it, which takes its name when
/// everything is on the disk. One that is not committed leaves nothing.
class AtomicFile {
 public:
  /// Throws: FileError where it cannot be made.
  AtomicFile(const char* function, const std::string& path, Location where);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws: FileError, when the disk is full, say.
  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail_with(int code) const;

  const char* function_;
  const std::string& given_path_;
  Location where_;
  std::string path_, folder_, beside_;
  Descriptor file_;
  bool committed_ = false;
};

}  // namespace reel::io
