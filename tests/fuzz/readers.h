#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace reel_fuzz {

/// A reader of files from outside.
struct FuzzedReader {
  const char* name;    ///< of the folder of its corpus
  const char* ending;  ///< of the names of its files
  void (*read)(const std::string& path);
  /// The most bytes that one allocation may have for each byte of a file; 0: not limited.
  std::size_t allocated_per_byte;
  /// The most bytes that one allocation may have besides: buffers of readers and libraries, whatever the file's size.
  std::size_t allocated_besides = 1 << 17;
};

/// All readers.
std::span<const FuzzedReader> readers();

/// Reads bytes as a file of one of the readers. They may refuse it by an error that is no MemoryError, and do nothing
/// else: whatever else they throw is passed on.
/// Throws: std::runtime_error if the bytes cannot be written to a file, or if the reader allocates more than a file of this
/// size can want; what the reader must not throw.
void read_bytes(const FuzzedReader& reader, std::span<const unsigned char> bytes);

}  // namespace reel_fuzz
