#pragma once

#include <string_view>

namespace reel::detail {

/// Writes "reel: warning: …" and a newline to stderr.
void print_warning(std::string_view text) noexcept;

/// Prints the warning that text() returns. Exceptions while it is built are swallowed: a warning is not worth one.
template <class Text>
void warn(Text text) noexcept {
  try {
    print_warning(text());
  } catch (...) {
  }
}

}  // namespace reel::detail
