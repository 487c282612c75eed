#include "printable.h"

#include <algorithm>

#include <fmt/format.h>

#include "utf8.h"

namespace reel::detail {

namespace {

bool is_unseen(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  // Control characters; invisible format characters; line and paragraph separators. Source: The Unicode Character
  // Database 15.0, categories Cc, Zl and Zp, and the property Default_Ignorable_Code_Point.
  static constexpr Range ranges[] = {{0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},      {0x34f, 0x34f},
                                     {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},  {0x180b, 0x180f},
                                     {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},  {0x3164, 0x3164},
                                     {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},  {0xfff0, 0xfffb},
                                     {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    Character character = first_character(text);
    if (!character.is_valid)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(character.code));
    else if (is_unseen(character.code))
      shown += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(character.code));
    else
      shown += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    shown.append(printable(text.substr(0, end))).append("\n");
  return shown + printable(text);
}

std::string shortened(std::string_view name) {
  constexpr std::size_t most_bytes = 100;
  return printable(whole_characters(name, most_bytes)) + (name.size() > most_bytes ? "…" : "");
}

std::string shown(std::string_view name) { return fmt::format("'{}'", shortened(name)); }

}  // namespace reel::detail
