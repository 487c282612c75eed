#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "../../logging/plot/html.h"
#include "slices.h"

namespace reel::debug {

namespace {

// A box of the graph and those above it.
struct Frame {
  std::int64_t time = 0;
  std::map<std::string, Frame> parts = {};

  Frame& part(const std::string& name, std::int64_t duration) {
    Frame& found = parts[name];
    found.time += duration;
    return found;
  }
};

constexpr double width = 1200, row = 20, least = 0.4;

void draw(std::string& svg, const std::string& name, const Frame& frame, double left, int level, double scale,
          bool backward) {
  double size = static_cast<double>(frame.time) * scale;
  if (size < least) return;
  const char* kind = level == 0 ? "all" : backward ? "back" : "forth";
  svg += fmt::format(
      "<g class=\"{}\"><title>{}: {:.3f} ms</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
      "height=\"{:.0f}\"/>",
      kind, logging::html_text(name), static_cast<double>(frame.time) / 1e6, left, level * row,
      std::max(size - 0.5, 0.3), row - 1);
  auto letters = static_cast<std::size_t>(size / 7);
  if (letters >= 3)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", left + 4, level * row + 14,
                       logging::html_text(name.size() > letters ? name.substr(0, letters - 1) + "…" : name));
  svg += "</g>\n";
  std::vector<std::pair<std::int64_t, const std::string*>> order;
  for (const auto& [part, inner] : frame.parts) order.emplace_back(-inner.time, &part);
  std::ranges::sort(order);
  for (const auto& [time, part] : order) {
    bool goes_back = backward || (level == 0 && *part == "backward");
    draw(svg, *part, frame.parts.at(*part), left, level + 1, scale, goes_back);
    left += static_cast<double>(-time) * scale;
  }
}

int depth_of(const Frame& frame) {
  int depth = 0;
  for (const auto& [name, part] : frame.parts) depth = std::max(depth, depth_of(part));
  return depth + 1;
}

}  // namespace

std::string flame_graph_svg(const std::vector<Slice>& slices) {
  Frame all;
  for (const Slice& slice : slices) {
    if (slice.kind == OpKind::backward || slice.waits) continue;
    all.time += slice.duration;
    Frame* at = &all.part(slice.kind == OpKind::gradient ? "backward" : "forward", slice.duration);
    std::string_view module = slice.module;
    while (!module.empty()) {
      std::size_t dot = module.find('.');
      at = &at->part(std::string(module.substr(0, dot)), slice.duration);
      module = dot == std::string_view::npos ? std::string_view() : module.substr(dot + 1);
    }
    at = &at->part(fmt::format("{}:{}", slice.file.substr(slice.file.rfind('/') + 1), slice.line), slice.duration);
    at->part(std::string(slice.op), slice.duration);
  }
  std::string boxes;
  draw(boxes, "all", all, 0, 0, width / static_cast<double>(std::max<std::int64_t>(all.time, 1)), false);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" role=\"img\" "
      "aria-label=\"Flame graph\">\n<style>text {{ font: 12px system-ui, sans-serif; fill: #1d1f21; }} .all rect {{ "
      "fill: #c9ccd1; }} "
      ".forth rect {{ fill: #8fc1e8; }} .back rect {{ fill: #f2b187; }} g:hover rect {{ stroke: #1d1f21; "
      "}}</style>\n{2}</svg>\n",
      width, depth_of(all) * row, boxes);
}

}  // namespace reel::debug
