#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <reel/location.h>

namespace reel::io {

/// An open file descriptor, closed by the destructor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// The system's message for a value of errno.
std::string words_of(int code);

/// Throws: FileError for a path with a NUL, at which the system would end it. `failed`: "cannot open".
void check_path(const char* function, const char* failed, const std::string& path, Location where);

/// A file to read.
class Reader {
 public:
  /// `own_names`: as of AtomicFile; only the last name counts. Throws: FileError unless it is an ordinary file that can
  /// be opened.
  Reader(const char* function, const std::string& path, Location where, int own_names = 0);
  /// Its size when it was opened, in bytes.
  std::uint64_t size() const { return size_; }
  /// The open file, for reading at any position; stays this object's.
  int descriptor() const { return file_.get(); }
  /// Fills `bytes` from the file, starting at offset `from`. Throws: FileError on failure, or if the file has become
  /// shorter.
  void read(std::uint64_t from, std::span<std::byte> bytes) const;
  /// The first bytes, at most `most`. Throws: FileError, as `read`.
  std::string beginning(std::uint64_t most = UINT64_MAX) const;

 private:
  const char* function_;
  const std::string& path_;
  Location where_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace reel::io
