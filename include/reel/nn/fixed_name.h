#pragma once

#include <algorithm>
#include <cstddef>

namespace reel::nn {

/// A name as an argument of a template: what errors call a layer that is a function and no more.
template <std::size_t size>
struct FixedName {
  char text[size] = {};
  consteval FixedName(const char (&given)[size]) { std::copy_n(given, size, text); }
};

}  // namespace reel::nn
