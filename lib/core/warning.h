#pragma once

#include <string_view>

namespace reel::detail {

/// Writes "reel: warning: …" and a line's end to stderr.
void print_warning(std::string_view text) noexcept;

/// Warns of what text() returns. A warning that cannot be built is not worth an exception, so that none comes out.
template <class Text>
void warn(Text text) noexcept {
  try {
    print_warning(text());
  } catch (...) {
  }
}

}  // namespace reel::detail
