#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <reel/location.h>

#include "../histogram.h"

namespace reel::logging {

/// A value of an event: that member which belongs to its kind. Texts refer to memory of the reader.
struct LoggedValue {
  enum class Kind : std::uint8_t { number, histogram, picture, text, hyper_parameters, other };
  Kind kind = Kind::other;
  std::string_view tag;
  double number = 0;
  Histogram histogram;
  std::string_view bytes;  ///< of a picture its file, of a text itself, of hyper-parameters the plugin's message
};

/// An event of an event file.
struct LoggedEvent {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
  bool starts_session = false;  ///< what is older and of this step or later is void
  std::vector<LoggedValue> values;
};

/// Calls f with each event of an event file, of which at most one record at a time is held in memory. A last record that
/// is cut off, as in the file of a killed process or of one that still runs, is passed over.
/// Throws: FileError with the byte's position where a check does not fit or a record is no event, after f has seen the
/// events before it, or where f throws a WireError; FileError if the file cannot be read.
void read_events(const std::string& path, const std::function<void(const LoggedEvent&)>& f, Location where);

/// Reads an event. Throws: WireError for bytes that are none.
LoggedEvent parsed_event(std::string_view bytes);

}  // namespace reel::logging
