#pragma once

#include <cstddef>
#include <string_view>

namespace reel::detail {

/// A character of UTF-8, or a byte that begins none.
struct Character {
  char32_t code;      ///< if not valid, the byte
  std::size_t bytes;  ///< 1 if not valid
  bool is_valid;
};

/// The first character of a text that is not empty. Source: The Unicode Standard 15.0, table 3-7.
Character first_character(std::string_view text);

/// The offset of the first byte that is not UTF-8; npos if there is none.
std::size_t find_not_utf8(std::string_view text);

/// The longest prefix of at most `most_bytes` bytes that does not end within a character.
std::string_view whole_characters(std::string_view text, std::size_t most_bytes);

}  // namespace reel::detail
