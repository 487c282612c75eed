#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <reel/shape.h>

namespace reel::debug {

/// The index of an element given its row-major offset: "[1, 2]".
inline std::string index_of(std::int64_t element, const Shape& shape) {
  std::string text;
  for (int i = shape.rank(); i-- > 0;) {
    text = fmt::format("{}{}{}", element % shape[i], text.empty() ? "" : ", ", text);
    element /= shape[i];
  }
  return "[" + text + "]";
}

}  // namespace reel::debug
