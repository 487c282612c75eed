#pragma once

#include <string>

#include <reel/location.h>

#include "appended_file.h"

namespace reel::logging {

/// The prefix of the names of event files.
constexpr const char* event_file_prefix = "events.out.tfevents.";

/// Creates an event file in a folder, which is created if it does not exist, and begins it. TensorBoard reads the files
/// of a folder in the order of their names, so the name sorts after those of the files that are there.
/// Throws: FileError.
AppendedFile create_event_file(const std::string& directory, double wall_time, Location where);

}  // namespace reel::logging
