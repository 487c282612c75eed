#include <reel/debug/live_tensors.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "../core/context.h"
#include "../core/device/largest_tensors.h"
#include "../record/tape_list.h"

namespace reel::debug {

using namespace detail;

namespace {

std::unordered_set<const Storage*> saved_by(const TapeList& innermost) {
  std::unordered_set<const Storage*> saved;
  for (const TapeList* list = &innermost; list; list = list->outer())
    for (const Entry* entry = list->last(); entry; entry = entry->previous)
      for (std::uint32_t i = 0; i < entry->saved_count; ++i)
        if (const Body& body = entry->saved()[i].tensor.body(); !body.requires_grad) saved.insert(body.storage);
  return saved;
}

}  // namespace

std::vector<LiveTensors> live_tensors() {
  std::vector<LiveTensors> found;
  for (const TensorsOfLine& line : tensors_by_line([](const Body&) { return true; }, saved_by(*context().tapes)))
    found.push_back({line.made_at, line.count, line.bytes, line.saved_bytes, line.largest_shape, line.largest_dtype});
  return found;
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
