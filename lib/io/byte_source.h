#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <reel/io/safetensors.h>
#include <reel/location.h>

#include "../core/op_error.h"
#include "file.h"

namespace reel::io {

/// Reads the bytes of a file, a pipe or a device in pieces.
class ByteSource {
 public:
  /// Throws: FileError, in the name of `function`, if it cannot be opened.
  ByteSource(const char* function, const std::string& path, std::uint64_t most_bytes, Location where);

  /// The next piece, which is valid until the next call; empty at the end.
  /// Throws: FileError if it cannot be read, if there are more than `most_bytes`, and if `is_text` for a NUL.
  std::string_view next(bool is_text);
  /// True for a device, which may have no end.
  bool is_device() const;

  /// Throws: FileError.
  template <class... T>
  [[noreturn]] void refuse(fmt::format_string<T...> words, T&&... values) const {
    detail::fail<FileError>(function_, where_, words, std::forward<T>(values)...);
  }

 private:
  const char* function_;
  const std::string& path_;
  std::uint64_t most_bytes_;
  Location where_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<std::array<char, 1 << 16>> piece_ = std::make_unique<std::array<char, 1 << 16>>();
};

}  // namespace reel::io
