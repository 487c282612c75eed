#pragma once

#include <string_view>

#include <reel/location.h>

namespace reel::logging {

/// Throws: Error unless the tag is UTF-8 without control characters and not empty. `what`: "the tag".
void check_tag(const char* function, const char* what, std::string_view tag, Location where);

/// Throws: Error unless the text is UTF-8. `what`: "the text of tag".
void check_text(const char* function, const char* what, std::string_view tag, std::string_view text, Location where);

/// Throws: Error unless the name of a run can be that of a folder.
void check_run(const char* function, std::string_view name, Location where);

}  // namespace reel::logging
