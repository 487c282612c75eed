#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <reel/io/safetensors.h>
#include <reel/location.h>

namespace reel::io {

struct TextOptions {
  /// The most bytes that are read. What goes on beyond them, as some devices do without an end, is refused.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
  /// The most bytes of a line, for `read_lines`.
  std::uint64_t most_line_bytes = std::uint64_t{1} << 20;
};

/// Reads a text in UTF-8 whole, from a file or a pipe.
/// Throws: FileError, which names the file and says what the system says, for one that cannot be opened or read to its
/// end; for one that is not UTF-8 or has a NUL, and for one that is too long.
std::string read_text(const std::string& path, const TextOptions& options = {}, Location where = Location::here());

/// Reads the lines of a text in UTF-8, without what ends them: "\n" or "\r\n". The last line need not have an end.
/// Throws: FileError as `read_text`, with the line's number, and for a line that is too long.
std::vector<std::string> read_lines(const std::string& path, const TextOptions& options = {},
                                    Location where = Location::here());

/// The text as a terminal or a log may show it: of what is not UTF-8, and of characters that control the terminal, the
/// direction of writing or the end of a line, or that are invisible, the codes: `\u{9b}`, `\u{202e}`, `\xff`.
std::string printable(std::string_view text);

}  // namespace reel::io
