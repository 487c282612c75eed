#include "warning.h"

#include <fmt/format.h>

#include <cstdio>

namespace reel::detail {

void print_warning(std::string_view text) noexcept {
  try {
    std::fputs(fmt::format("reel: warning: {}\n", text).c_str(), stderr);
  } catch (...) {
    // Out of memory: nothing can be printed.
  }
}

}  // namespace reel::detail
