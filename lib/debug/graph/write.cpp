#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <reel/debug/graph.h>

namespace reel::debug {
namespace {

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
    else  // a picture is XML, which has no other control characters
      quoted += static_cast<unsigned char>(letter) < 0x20 && letter != '\t' ? '?' : letter;
  }
  return quoted + '"';
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

}  // namespace

std::string Graph::dot() const { return DotWriter(*this).text(); }

}  // namespace reel::debug
