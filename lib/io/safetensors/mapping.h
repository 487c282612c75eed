#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <reel/location.h>

namespace reel::io {

class Reader;

/// A file mapped into memory whole. Its pages may be written to; that changes a copy of this process, and not the file.
class Mapping : detail::Immovable {
 public:
  /// Throws: FileError, in the name of `function`, if the file cannot be mapped.
  Mapping(const char* function, const Reader& file, const std::string& path, Location where);
  ~Mapping();

  std::span<std::byte> bytes() const { return {begin_, size_}; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace reel::io
