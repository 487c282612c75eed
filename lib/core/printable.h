#pragma once

#include <string>
#include <string_view>

namespace reel::detail {

/// The text made safe for a terminal or a log: `io::printable`.
std::string printable(std::string_view text);

/// `printable`, but with the ends of lines as they are.
std::string printable_lines(std::string_view text);

/// A name that comes from outside the program, for a message: printable, and truncated if it is long.
std::string shortened(std::string_view name);

/// `shortened` in quotes.
std::string shown(std::string_view name);

}  // namespace reel::detail
