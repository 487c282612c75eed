#include "utf8.h"

#include <algorithm>

namespace reel::detail {

Character first_character(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  Character invalid{first, 1, false};
  if (first < 0x80) return {first, 1, true};
  // A continuation byte, or one that would begin an overlong or too large code, begins no character.
  if (first < 0xc2 || first > 0xf4) return invalid;
  std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < bytes) return invalid;
  auto code = static_cast<char32_t>(first & (0x7f >> bytes));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return invalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < smallest[bytes] || code > 0x10ffff || is_surrogate) return invalid;
  return {code, bytes, true};
}

std::size_t find_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    Character character = first_character(text.substr(at));
    if (!character.is_valid) return at;
    at += character.bytes;
  }
  return text.npos;
}

std::string_view whole_characters(std::string_view text, std::size_t most_bytes) {
  std::size_t end = std::min(text.size(), most_bytes);
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace reel::detail
