#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/debug/recorded_run.h>

namespace reel::debug {

/// Returns the text of the first regular file of at most 4 MB that the path `file` or its last part names below one of
/// the folders; empty if there is none. Below them no link is followed, and no hidden file or folder is opened.
std::string source_below(std::string_view file, std::span<const std::string> folders);

/// The lines of a text, each without its end.
std::vector<std::string_view> lines_of(std::string_view text);

/// The folder of a source file that the program itself names, where it may be shown from.
std::string own_folder_of(std::string_view file);

/// Returns the text that a run holds of a source file, else that of one below the current folder or the given ones.
std::string source_of(const RecordedRun& run, std::string_view file, std::vector<std::string> folders);

}  // namespace reel::debug
