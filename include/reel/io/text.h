#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/location.h>

namespace reel::io {

/// Options of `read_text` and `read_lines`.
struct TextOptions {
  /// The most bytes that are read; a longer file, such as a device without an end, is refused. Default 1 GiB.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
  /// The most bytes of a line, for `read_lines`. Default 1 MiB.
  std::uint64_t most_line_bytes = std::uint64_t{1} << 20;
};

/// Reads a text in UTF-8 whole, from a file or a pipe.
/// Throws: FileError, which names the file, with the system's message if it cannot be opened or read to its end; for a
/// text that is not UTF-8 or contains a NUL, and for one that is too long.
std::string read_text(const std::string& path, const TextOptions& options = {}, Location where = Location::here());

/// Reads the lines of a text in UTF-8, without their ends, "\n" or "\r\n". The last line need not have an end.
/// Throws: FileError, which names the file, with the system's message if it cannot be opened or read to its end; with
/// the line's number, for a line that is not UTF-8 or contains a NUL, and for one that is too long; for a text that is
/// too long.
std::vector<std::string> read_lines(const std::string& path, const TextOptions& options = {},
                                    Location where = Location::here());

/// The text in a form that is safe for a terminal or a log: bytes that are not UTF-8, and characters that are invisible
/// or control the terminal, the direction of writing or the end of a line, are replaced by their codes: `\u{9b}`,
/// `\u{202e}`, `\xff`.
std::string printable(std::string_view text);

}  // namespace reel::io
