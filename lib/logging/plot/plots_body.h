#pragma once

#include <string>

#include <reel/location.h>

namespace reel::logging {

/// The body of the page of a folder of logs, for another page that shows them. Throws: FileError if there are no logs.
std::string plots_body(const std::string& directory, Location where);
/// The scripts of such a body.
std::string plots_script();

}  // namespace reel::logging
