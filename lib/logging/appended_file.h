#pragma once

#include <string>
#include <string_view>

#include <reel/location.h>

#include "../io/file.h"

namespace reel::logging {

/// A file that grows at its end. The library has made its name, where no link is followed. Appended bytes wait in memory,
/// and `flush` hands them to the system in one piece, so that a reader of the file of a killed process finds whole
/// records.
class AppendedFile {
 public:
  /// Opens a file to append to it, with `is_new` one that must not exist yet; `is_open` is false if it exists.
  /// Throws: FileError if it cannot be opened, or is no ordinary file.
  AppendedFile(std::string path, bool is_new, Location where);
  /// Flushes, and ignores an error.
  ~AppendedFile();
  AppendedFile(AppendedFile&&) = default;
  AppendedFile& operator=(AppendedFile&&) = default;

  bool is_open() const { return file_.is_open(); }
  const std::string& path() const { return path_; }
  /// The open file; stays this object's.
  int descriptor() const { return file_.get(); }

  /// Adds bytes to those that wait. Throws: FileError if many wait and cannot be written; then the bytes are not added.
  void append(std::string_view bytes, Location where);
  /// Hands what waits to the system. Throws: FileError if the disk is full, for instance; what could not be written
  /// still waits.
  void flush(Location where);

 private:
  /// Writes what waits; returns 0, or a value of errno.
  int write_waiting() noexcept;

  std::string path_;
  io::Descriptor file_;
  std::string waiting_;
};

}  // namespace reel::logging
