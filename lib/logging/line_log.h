#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <reel/location.h>

#include "appended_file.h"

namespace reel::logging {

/// A log of one line for each entry, which begins with its step: CSV or JSON lines.
class LineLog {
 public:
  /// The form of the lines.
  struct Form {
    std::string_view header;       ///< the first line, with its end; empty: none
    std::string_view before_step;  ///< what each other line has before its step
  };
  static constexpr Form csv{"step,wall_time,run,tag,value\n", ""};
  static constexpr Form json{"", "{\"step\":"};

  /// Opens a file to append to it, and begins it with the header if it is new. A last line without an end, which a
  /// killed process has left, is removed.
  /// Throws: FileError if it cannot be read or written, or does not begin as this form does.
  LineLog(const std::string& path, const Form& form, Location where);
  /// Appends a line, given with its end. Throws: FileError.
  void append(std::string_view line, Location where) { file_.append(line, where); }
  /// Hands what waits to the system. Throws: FileError.
  void flush(Location where) { file_.flush(where); }
  /// Removes the lines of a step and later ones; the file is replaced as a whole. Throws: FileError.
  void purge(std::int64_t step, Location where);

 private:
  bool is_kept(std::string_view line, std::int64_t step) const;

  Form form_;
  AppendedFile file_;
};

/// A field of CSV, in quotes where it must be. Source: RFC 4180, section 2.
std::string csv_field(std::string_view text);
/// A number for CSV: "nan", "inf" and "-inf" beside the shortest decimal fraction that gives this number.
std::string csv_number(double value);

}  // namespace reel::logging
