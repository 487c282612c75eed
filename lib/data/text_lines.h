#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <reel/data/reading.h>
#include <reel/detail/immovable.h>

namespace reel::detail {

/// A line of a text that is being read.
struct TextLine {
  std::string_view text;    ///< without its end
  std::string_view end;     ///< "\n", "\r\n", or nothing at the end of the text
  std::int64_t number = 0;  ///< from 1
  std::string fault = {};   ///< what makes it no line of text; empty if it is one
};

/// The bytes of a file or a pipe, as they are. Throws: FileError if it cannot be read or is too
/// long, and for a text if it is a device with a NUL.
std::string read_bytes(const char* function, const std::string& path, std::uint64_t most_bytes, Location where,
                       bool is_text);

/// Reads a text line by line, and reports broken items. The views of a line are valid as long as this object.
class TextLines : Immovable {
 public:
  /// Throws: FileError if the file cannot be read or is too long.
  TextLines(const char* function, const std::string& path, const data::ReadOptions& options, Location where);

  /// Reads the next line; returns false at the end.
  bool next(TextLine& line);
  /// Throws a FileError about a line, or counts an item that is left out, as the options have it.
  void refuse(std::int64_t line, const std::string& sentence);
  /// The source of an item that begins in a line.
  data::Source source(std::int64_t line) const { return {file_, line}; }
  std::uint64_t most_line_bytes() const { return options_.most_line_bytes; }

 private:
  const char* function_;
  data::ReadOptions options_;
  Location where_;
  std::shared_ptr<const std::string> file_;
  std::string text_;
  std::string_view rest_;
  std::int64_t number_ = 0;
};

}  // namespace reel::detail
