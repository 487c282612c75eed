#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <reel/location.h>

#include "modules/files_table.h"

namespace reel::detail {

/// Appends what a module delivers to a text of at most `most_bytes`; exceptions do not pass through the module.
class TextSink {
 public:
  explicit TextSink(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}
  /// To be passed to one call; refers to this object.
  ByteSink sink();
  /// Throws: MemoryError, in the name of `function`, if the text did not fit into memory.
  void check_memory(const char* function, Location where) const;
  /// True if the bytes would have been more than `most_bytes`.
  bool is_full() const { return is_full_; }
  std::string text;

 private:
  static bool append(void* object, const void* bytes, std::size_t count) noexcept;

  std::uint64_t most_bytes_;
  bool is_full_ = false, lacks_memory_ = false;
};

/// True if the bytes begin as those of a gzip file do.
bool is_gzip(std::string_view bytes);

/// The decompressed contents of a gzip file, which may have several members. The memory grows with what is decompressed.
/// `path` names the file in messages. `cuts`: returns the first `most_bytes` if there would be more.
/// Throws: FileError if the bytes are cut off, faulty or followed by others, or would be more than `most_bytes`;
/// MemoryError.
std::string gunzip(std::string_view bytes, std::uint64_t most_bytes, const std::string& path, Location where,
                   bool cuts = false);

/// A gzip file of the bytes, which depends on nothing else. Throws: MemoryError; FileError without libreel_files.so.
std::string gzip(std::string_view bytes, Location where);

}  // namespace reel::detail
