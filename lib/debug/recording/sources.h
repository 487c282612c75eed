#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reel::debug {

/// Returns the text of the first regular file of at most 4 MB that the path `file` or its last part names below one of
/// the folders; empty if there is none. Below them no link is followed, and no hidden file or folder is opened.
std::string source_below(std::string_view file, std::span<const std::string> folders);

}  // namespace reel::debug
