#pragma once

#include <string>
#include <string_view>

namespace reel::logging {

/// A text in HTML, on one line: markup is escaped, and characters that are invisible or not UTF-8 are shown by their
/// codes.
std::string html_text(std::string_view text);
/// A text of several lines in HTML, for an element that keeps line ends.
std::string html_lines(std::string_view text);
/// A string of JavaScript within a script element of HTML.
std::string script_string(std::string_view text);
/// Bytes in base64. Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace reel::logging
