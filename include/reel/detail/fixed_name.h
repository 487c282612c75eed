#pragma once

#include <algorithm>
#include <cstddef>

namespace reel::nn {

/// A name as a template argument: what errors call a layer that is a single function.
template <std::size_t size>
struct FixedName {
  char text[size] = {};  ///< the characters, with the final zero
  /// A name from a string literal.
  consteval FixedName(const char (&given)[size]) { std::copy_n(given, size, text); }
};

}  // namespace reel::nn
