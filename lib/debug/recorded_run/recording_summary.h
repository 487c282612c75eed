#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <reel/location.h>

namespace reel::debug {

/// The size and contents of a recording's file, in numbers.
struct RecordingSummary {
  std::string program;                                ///< the command line of the recorded program
  bool is_complete = false;                           ///< true if the recording was closed
  std::uint64_t ops = 0, dropped = 0;                 ///< the ops that it has, and those that were overwritten
  std::int64_t steps = 0, anomalies = 0, errors = 0;  ///< steps; tensors with NaN or infinity; ops that threw
  std::map<std::string_view, std::int64_t> kinds;     ///< the number of ops of each kind
};

/// Reads a file segment by segment, so that its size does not matter for the memory.
/// Throws: FileError if the file cannot be read, or is no recording.
RecordingSummary summarise_recording(const std::string& file, Location where = Location::here());

}  // namespace reel::debug
