#include <reel/debug/live_tensors.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "../core/context.h"
#include "../core/device/largest_tensors.h"
#include "../core/storage.h"
#include "../record/tape_list.h"

namespace reel::debug {

using namespace detail;

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

std::unordered_set<const Storage*> saved_by(const TapeList& innermost) {
  std::unordered_set<const Storage*> saved;
  for (const TapeList* list = &innermost; list; list = list->outer())
    for (const Entry* entry = list->last(); entry; entry = entry->previous)
      for (std::uint32_t i = 0; i < entry->saved_count; ++i)
        if (const Body& body = entry->saved()[i].tensor.body(); !body.requires_grad) saved.insert(body.storage);
  return saved;
}

void take_in(LiveTensors& line, const Body& body) {
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

template <class Wanted>
std::vector<LiveTensors> live_tensors_where(Wanted wanted) {
  Context& context = detail::context();
  std::unordered_set<const Storage*> saved = saved_by(*context.tapes);
  std::map<Line, LiveTensors> lines;
  {
    Heap::Inspection inspection(*context.heap);
    std::vector<const Body*> bodies;
    for (const void* block : inspection.bodies())
      if (auto* body = static_cast<const Body*>(block); has_elements(*body) && wanted(*body)) bodies.push_back(body);
    std::sort(bodies.begin(), bodies.end(), stands_before);
    const Storage* counted = nullptr;
    for (const Body* body : bodies) {
      LiveTensors& line = lines[line_of(*body)];
      take_in(line, *body);
      if (std::exchange(counted, body->storage) == body->storage) continue;
      line.bytes += body->storage->bytes();
      if (saved.contains(body->storage)) line.saved_bytes += body->storage->bytes();
    }
  }
  std::vector<LiveTensors> found;
  for (const auto& [place, line] : lines) found.push_back(line);
  std::stable_sort(found.begin(), found.end(),
                   [](const LiveTensors& a, const LiveTensors& b) { return a.bytes > b.bytes; });
  return found;
}

}  // namespace

std::vector<LiveTensors> live_tensors() {
  return live_tensors_where([](const Body&) { return true; });
}

std::string largest_tensors(Device device) {
  constexpr std::size_t most = 5;
  std::vector<LiveTensors> lines = live_tensors_where([device](const Body& body) { return body.device == device; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, lines.size()); ++i)
    text +=
        fmt::format("{}{:.1f} MB at {} ({} tensor{}, the largest {} {})", i == 0 ? "" : ", ",
                    static_cast<double>(lines[i].bytes) / 1e6, to_string(lines[i].made_at), lines[i].count,
                    lines[i].count == 1 ? "" : "s", to_string(lines[i].largest_shape), name_of(lines[i].largest_dtype));
  return text;
}

std::string to_string(const std::vector<LiveTensors>& lines) {
  LiveTensors sum;
  std::vector<std::string> largest;
  std::size_t width = 7;
  for (const LiveTensors& line : lines) {
    sum.count += line.count;
    sum.bytes += line.bytes;
    sum.saved_bytes += line.saved_bytes;
    largest.push_back(fmt::format("{} {}", to_string(line.largest_shape), name_of(line.largest_dtype)));
    width = std::max(width, largest.back().size());
  }
  auto row = [width](const LiveTensors& line, std::string_view shape, std::string_view place) {
    return fmt::format("{:>10.3f} {:>10.3f} {:>9}  {:{}}  {}\n", static_cast<double>(line.bytes) / 1e6,
                       static_cast<double>(line.saved_bytes) / 1e6, line.count, shape, width, place);
  };
  std::string text =
      fmt::format("{:>10} {:>10} {:>9}  {:{}}  {}\n", "MB", "on tape", "tensors", "largest", width, "made at");
  for (std::size_t i = 0; i < lines.size(); ++i) text += row(lines[i], largest[i], to_string(lines[i].made_at));
  return text + row(sum, "", "in all");
}

}  // namespace reel::debug
