#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>

namespace reel::debug {

/// Returns the text that a run holds of a source file, else that of one below the current folder or the given ones; if
/// this program names the file, it may be anywhere.
std::string source_of(const RecordedRun& run, std::string_view file, std::vector<std::string> folders,
                      bool is_own = false);

}  // namespace reel::debug
