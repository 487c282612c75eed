#include <reel/data/source.h>

#include <fmt/format.h>

#include "../core/printable.h"

namespace reel::data {

std::string to_string(const Source& source) {
  if (!source.known()) return "unknown source";
  std::string file = detail::printable(source.file());
  return source.line() > 0 ? fmt::format("{}:{}", file, source.line()) : file;
}

std::string to_string(std::span<const Source> sources, std::size_t most) {
  std::string text;
  std::size_t shown = 0, more = 0;
  for (const Source& source : sources) {
    if (!source.known()) continue;
    if (shown == most) {
      ++more;
      continue;
    }
    if (shown++ > 0) text += ", ";
    text += to_string(source);
  }
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

}  // namespace reel::data
