#pragma once

#include <string>
#include <string_view>

namespace reel::detail {

/// The text as a terminal or a log may show it: `io::printable`.
std::string printable(std::string_view text);

/// A name that is not the program's own, for a sentence: printable, and cut where it is long.
std::string shortened(std::string_view name);

/// `shortened` in quotes.
std::string shown(std::string_view name);

}  // namespace reel::detail
