#include "tag.h"

#include <algorithm>
#include <cstddef>

#include <reel/error.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/utf8.h"

namespace reel::logging {

using detail::fail;

void check_tag(const char* function, const char* what, std::string_view tag, Location where) {
  if (tag.empty()) fail<Error>(function, where, "{} is empty; give it a name", what);
  bool is_plain = std::all_of(tag.begin(), tag.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (is_plain) return;
  for (std::string_view rest = tag; !rest.empty();) {
    detail::Character character = detail::first_character(rest);
    if (!character.is_valid) fail<Error>(function, where, "{} {} is not UTF-8", what, detail::shown(tag));
    if (character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0))
      fail<Error>(function, where, "{} {} has a control character; leave it out", what, detail::shown(tag));
    rest.remove_prefix(character.bytes);
  }
}

void check_text(const char* function, const char* what, std::string_view tag, std::string_view text, Location where) {
  if (std::size_t at = detail::find_not_utf8(text); at != text.npos)
    fail<Error>(function, where, "{} {} is not UTF-8 at byte {}", what, detail::shown(tag), at);
}

void check_run(const char* function, std::string_view name, Location where) {
  constexpr std::size_t most_bytes = 200;
  check_tag(function, "the name of a curve", name, where);
  if (name.find('/') != name.npos || name == "." || name == ".." || name.size() > most_bytes)
    fail<Error>(function, where,
                "the name of a curve {} must be usable as that of a folder: without '/', at most {} bytes",
                detail::shown(name), most_bytes);
}

}  // namespace reel::logging
