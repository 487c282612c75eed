#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <reel/data/source.h>
#include <reel/io/safetensors.h>

/// \file
/// Options of all readers of text. The readers take UTF-8, with or without a byte order mark, plain or compressed with
/// gzip, whose lines end with "\n" or "\r\n".

namespace reel::data {

/// The action of a reader at a broken item of a text: a line that is not UTF-8, has a NUL or is too long, or that has not
/// the format's form.
enum class OnError : std::uint8_t {
  stop,  ///< throws io::FileError, which names the file and the line and says what is expected
  skip,  ///< leaves the item out, and counts it
};

/// The items that a reader has left out.
struct Skipped {
  std::int64_t count = 0;               ///< the number of items
  std::vector<std::string> first = {};  ///< what is wrong with the first ten of them, with file and line
};

/// Options of all readers of text.
struct ReadOptions {
  OnError on_error = OnError::stop;  ///< what happens to a broken item; default OnError::stop
  /// Where items that are left out are counted, in addition to those that are counted there already. Null (default):
  /// nowhere.
  Skipped* skipped = nullptr;
  /// The most bytes of the text, after decompression; a longer one, such as a device without an end, is refused.
  /// Default 1 GiB.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
  std::uint64_t most_line_bytes = std::uint64_t{1} << 20;  ///< the most bytes of a line; default 1 MiB
};

/// A line of a text.
struct Line {
  std::string text;  ///< without its end
  Source source;     ///< the file and the line
};

/// Reads the lines of a text, empty ones too.
/// Throws: io::FileError, which names the file, if it cannot be read or is too long, and for a broken line unless those
/// are skipped.
std::vector<Line> read_lines(const std::string& path, const ReadOptions& options = {},
                             Location where = Location::here());

}  // namespace reel::data
