#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "layout.h"

namespace reel::debug {
namespace {

constexpr double letter_width = 7.3, text_height = 15, box_border = 8;

std::string_view class_of(GraphNodeKind kind) {
  switch (kind) {
    case GraphNodeKind::parameter: return "parameter";
    case GraphNodeKind::data: return "data";
    case GraphNodeKind::op: return "op";
    case GraphNodeKind::module: return "module";
    case GraphNodeKind::failed: return "failed";
  }
  return "op";
}

// The text of a node: its label with its count, its shape, and its location.
std::vector<std::string> lines_of(const GraphNode& node) {
  std::vector<std::string> lines{node.count > 1 ? fmt::format("{} ×{}", node.label, node.count) : node.label};
  if (node.kind == GraphNodeKind::failed) lines[0] = "✗ " + lines[0];
  if (!node.form.empty()) lines.push_back(node.form);
  if (!node.file.empty()) lines.push_back(fmt::format("{}:{}", node.file.substr(node.file.rfind('/') + 1), node.line));
  return lines;
}

std::string title_of(const GraphNode& node) {
  if (!node.message.empty()) return node.message;
  std::string title = node.label;
  if (!node.module.empty()) title += " in " + node.module;
  if (!node.file.empty()) title += fmt::format(" at {}:{}", node.file, node.line);
  return title;
}

std::string quoted_in_dot(std::string_view text) {
  std::string quoted = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    if (letter == '\n')
      quoted += "\\n";
    else
      quoted += letter;
  }
  return quoted + '"';
}

std::string escaped_in_svg(std::string_view text) {
  std::string escaped;
  for (char letter : text) switch (letter) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default:
        // XML has no other control characters.
        escaped += static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t' ? '?' : letter;
    }
  return escaped;
}

std::size_t letters_in(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Modules within modules, and the nodes of each.
struct Cluster {
  std::map<std::string, Cluster> inner;
  std::vector<std::size_t> nodes;
};

class DotWriter {
 public:
  explicit DotWriter(const Graph& graph) : graph_(graph) {}

  std::string text() {
    text_ =
        "digraph reel {\n  node [shape=box, style=\"rounded,filled\", fillcolor=\"#f4f4f4\", "
        "fontname=\"monospace\"];\n";
    Cluster all;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      Cluster* at = &all;
      std::string_view path = graph_.nodes()[i].module;
      while (!path.empty()) {
        std::size_t dot = std::min(path.find('.'), path.size());
        at = &at->inner[std::string(path.substr(0, dot))];
        path.remove_prefix(std::min(dot + 1, path.size()));
      }
      at->nodes.push_back(i);
    }
    write(all, "  ");
    for (const GraphEdge& edge : graph_.edges()) {
      fmt::format_to(std::back_inserter(text_), "  n{} -> n{}", edge.from, edge.to);
      if (edge.order)
        text_ += " [style=dashed]";
      else if (edge.count > 1)
        fmt::format_to(std::back_inserter(text_), " [label=\"×{}\"]", edge.count);
      text_ += ";\n";
    }
    return text_ + "}\n";
  }

 private:
  void write(const Cluster& cluster, const std::string& indent) {
    for (std::size_t i : cluster.nodes) {
      const GraphNode& node = graph_.nodes()[i];
      fmt::format_to(std::back_inserter(text_), "{}n{} [label={}, tooltip={}{}];\n", indent, i,
                     quoted_in_dot(fmt::format("{}", fmt::join(lines_of(node), "\n"))), quoted_in_dot(title_of(node)),
                     style_of(node.kind));
    }
    for (const auto& [name, inner] : cluster.inner) {
      fmt::format_to(std::back_inserter(text_), "{}subgraph cluster_{} {{\n{}  label={};\n", indent, clusters_++,
                     indent, quoted_in_dot(name));
      write(inner, indent + "  ");
      text_ += indent + "}\n";
    }
  }
  static std::string_view style_of(GraphNodeKind kind) {
    switch (kind) {
      case GraphNodeKind::parameter: return ", fillcolor=\"#dbe9f6\"";
      case GraphNodeKind::data: return ", fillcolor=\"#e3f1e0\"";
      case GraphNodeKind::module: return ", fillcolor=\"#ece4f5\"";
      case GraphNodeKind::failed: return ", fillcolor=\"#f9d5d1\", color=\"#c0392b\", penwidth=2";
      case GraphNodeKind::op: break;
    }
    return "";
  }

  const Graph& graph_;
  std::string text_;
  int clusters_ = 0;
};

constexpr std::string_view svg_style = R"CSS(<style>
text { font: 12px monospace; fill: #222; text-anchor: middle; }
text.small { font-size: 11px; fill: #666; }
rect { fill: #f4f4f4; stroke: #999; }
.parameter rect { fill: #dbe9f6; } .data rect { fill: #e3f1e0; } .module rect { fill: #ece4f5; }
.failed rect { fill: #f9d5d1; stroke: #c0392b; stroke-width: 2; }
path.edge { fill: none; stroke: #888; } path.order { stroke-dasharray: 4 3; stroke: #c0392b; }
#arrow path { fill: #888; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; } text.small { fill: #999; } rect { fill: #2b2b2b; stroke: #777; }
  .parameter rect { fill: #1f3347; } .data rect { fill: #24382a; } .module rect { fill: #352a47; } .failed rect { fill: #4d211d; }
}
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
)CSS";

std::string path_of(const GraphEdge& edge, const GraphLayout& layout, std::size_t index) {
  std::string path;
  const std::vector<GraphLayout::Point>& route = layout.routes[index];
  if (route.empty()) {
    // A loop goes back at the right-hand side.
    const GraphBox &from = layout.boxes[edge.from], &to = layout.boxes[edge.to];
    double x1 = from.x + from.width, y1 = from.y + from.height * 0.7, x2 = to.x + to.width, y2 = to.y + to.height * 0.3;
    double out = std::max(x1, x2) + 22;
    return fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x1, y1, out, y1, out, y2, x2, y2);
  }
  fmt::format_to(std::back_inserter(path), "M{:.1f} {:.1f}", route[0].x, route[0].y);
  for (std::size_t i = 1; i < route.size(); ++i) {
    double middle = (route[i - 1].y + route[i].y) / 2;
    fmt::format_to(std::back_inserter(path), "C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", route[i - 1].x, middle,
                   route[i].x, middle, route[i].x, route[i].y);
  }
  return path;
}

}  // namespace

std::string Graph::dot() const { return DotWriter(*this).text(); }

std::string Graph::svg() const {
  std::vector<std::vector<std::string>> lines;
  std::vector<GraphBox> sizes;
  for (const GraphNode& node : nodes_) {
    lines.push_back(lines_of(node));
    std::size_t letters = 0;
    for (const std::string& line : lines.back()) letters = std::max(letters, letters_in(line));
    sizes.push_back({.width = static_cast<double>(letters) * letter_width + 2 * box_border,
                     .height = static_cast<double>(lines.back().size()) * text_height + box_border});
  }
  GraphLayout layout = laid_out(*this, std::move(sizes));
  std::string svg;
  auto out = std::back_inserter(svg);
  fmt::format_to(out,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
                 "{1:.0f}\">\n",
                 layout.width, layout.height);
  svg += svg_style;
  for (std::size_t i = 0; i < edges_.size(); ++i)
    fmt::format_to(out, "<path class=\"edge{}\" marker-end=\"url(#arrow)\" d=\"{}\"/>\n",
                   edges_[i].order ? " order" : "", path_of(edges_[i], layout, i));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const GraphBox& box = layout.boxes[i];
    fmt::format_to(out,
                   "<g class=\"{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
                   "height=\"{:.1f}\" rx=\"5\"/>",
                   class_of(nodes_[i].kind), escaped_in_svg(title_of(nodes_[i])), box.x, box.y, box.width, box.height);
    double y = box.y + text_height;
    for (std::size_t k = 0; k < lines[i].size(); ++k, y += text_height)
      fmt::format_to(out, "<text{} x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", k == 0 ? "" : " class=\"small\"", box.centre(),
                     y, escaped_in_svg(lines[i][k]));
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace reel::debug
