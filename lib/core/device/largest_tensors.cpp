#include "largest_tensors.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "../context.h"
#include "../storage.h"

namespace reel::detail {

namespace {

using Line = std::pair<std::string_view, int>;

Line line_of(const Body& body) { return {body.file ? body.file : "", body.line}; }

std::size_t bytes_shown(const Body& body) { return static_cast<std::size_t>(body.numel) * size_of(body.dtype); }

// Groups tensors that share elements, beginning with the one that most likely created them: it is listed with the size
// of all of them, at its call site.
bool stands_before(const Body* a, const Body* b) {
  if (a->storage != b->storage) return std::less<>()(a->storage, b->storage);
  auto rank = [](const Body& body) { return std::tuple(bytes_shown(body) < body.storage->bytes(), line_of(body)); };
  return rank(*a) < rank(*b);
}

void take_in(TensorsOfLine& line, const Body& body) {
  if (line.count++ != 0) {
    std::size_t largest = static_cast<std::size_t>(line.largest_shape.numel()) * size_of(line.largest_dtype);
    if (bytes_shown(body) <= largest) return;
  }
  line.made_at = {body.file, body.line};
  line.largest_shape = Shape({body.dims, static_cast<std::size_t>(body.rank)});
  line.largest_dtype = body.dtype;
}

// A tensor for which device memory has just run out has no elements.
bool has_elements(const Body& body) { return body.storage && (body.device == cpu || body.storage->device_block()); }

}  // namespace

std::vector<TensorsOfLine> tensors_by_line(const std::function<bool(const Body&)>& is_wanted,
                                           const std::unordered_set<const Storage*>& saved) {
  std::map<Line, TensorsOfLine> lines;
  {
    Heap::Inspection inspection(*context().heap);
    std::vector<const Body*> bodies;
    for (const void* block : inspection.bodies())
      if (auto* body = static_cast<const Body*>(block); has_elements(*body) && is_wanted(*body)) bodies.push_back(body);
    std::sort(bodies.begin(), bodies.end(), stands_before);
    const Storage* counted = nullptr;
    for (const Body* body : bodies) {
      TensorsOfLine& line = lines[line_of(*body)];
      take_in(line, *body);
      if (std::exchange(counted, body->storage) == body->storage) continue;
      line.bytes += body->storage->bytes();
      if (saved.contains(body->storage)) line.saved_bytes += body->storage->bytes();
    }
  }
  std::vector<TensorsOfLine> found;
  for (const auto& [place, line] : lines) found.push_back(line);
  std::stable_sort(found.begin(), found.end(),
                   [](const TensorsOfLine& a, const TensorsOfLine& b) { return a.bytes > b.bytes; });
  return found;
}

std::string largest_tensors(Device device) {
  constexpr std::size_t most = 5;
  std::vector<TensorsOfLine> lines = tensors_by_line([device](const Body& body) { return body.device == device; }, {});
  std::string text;
  for (std::size_t i = 0; i < std::min(most, lines.size()); ++i)
    text +=
        fmt::format("{}{:.1f} MB at {} ({} tensor{}, the largest {} {})", i == 0 ? "" : ", ",
                    static_cast<double>(lines[i].bytes) / 1e6, to_string(lines[i].made_at), lines[i].count,
                    lines[i].count == 1 ? "" : "s", to_string(lines[i].largest_shape), name_of(lines[i].largest_dtype));
  return text;
}

}  // namespace reel::detail
