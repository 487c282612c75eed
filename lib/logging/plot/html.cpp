#include "html.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "../../core/printable.h"
#include "../../page/text.h"

namespace reel::logging {

std::string html_text(std::string_view text) {
  std::string escaped;
  for (char c : detail::printable(text)) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (c == '\'')
      escaped += "&#39;";
    else
      escaped += c;
  }
  return escaped;
}

std::string html_lines(std::string_view text) {
  std::string lines;
  for (std::size_t newline; (newline = text.find('\n')) != text.npos; text.remove_prefix(newline + 1)) {
    std::string_view line = text.substr(0, newline);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines += html_text(line);
    lines += '\n';
  }
  return lines + html_text(text);
}

std::string script_json(const nlohmann::ordered_json& json) {
  // "</script>" would end the element; outside of texts JSON has no such letter.
  std::string all = json.dump(), result;
  std::string_view rest = all;
  for (std::size_t at; (at = rest.find('<')) != rest.npos; rest.remove_prefix(at + 1))
    result.append(rest.substr(0, at)).append("\\u003c");
  return result.append(rest);
}

std::string page_of(std::string_view title, std::string_view styles, std::string_view body,
                    std::string_view more_sources) {
  return fmt::format(fmt::runtime(detail::page::page_html), fmt::arg("title", html_text(title)),
                     fmt::arg("styles", styles), fmt::arg("body", body), fmt::arg("more_sources", more_sources));
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace reel::logging
