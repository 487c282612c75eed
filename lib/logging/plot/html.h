#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace reel::logging {

/// A text in HTML, on one line: markup is escaped, and characters that are invisible or not UTF-8 are shown by their
/// codes.
std::string html_text(std::string_view text);
/// A text of several lines in HTML, for an element that keeps line ends.
std::string html_lines(std::string_view text);
/// JSON within a script element of HTML, which no text in it ends.
std::string script_json(const nlohmann::ordered_json& json);
/// A page of HTML that loads nothing. `more_sources`: what its content security policy allows beside what it holds, such
/// as "; connect-src 'self'".
std::string page_of(std::string_view title, std::string_view styles, std::string_view body,
                    std::string_view more_sources = {});
/// Bytes in base64. Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace reel::logging
