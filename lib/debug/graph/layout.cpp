#include "layout.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace reel::debug {
namespace {

constexpr double graph_margin = 16, layer_gap = 34, node_gap = 18, passing_width = 6;
constexpr std::uint32_t longest_routed = 16;  // layers; a longer edge is drawn straight
constexpr int order_rounds = 8, place_rounds = 6;

// The nodes and, where an edge passes a layer, places for it.
class Layers {
 public:
  Layers(const Graph& graph, std::vector<GraphBox> sizes) : graph_(graph), boxes_(std::move(sizes)) {
    count_ = boxes_.size();
    assign_layers();
    add_passing();
    fill();
    for (int round = 0; round < order_rounds; ++round) order(round % 2 == 0);
    place_vertically();
    for (int round = 0; round < place_rounds; ++round) place(round % 2 == 0);
  }

  GraphLayout layout() {
    GraphLayout found;
    double left = std::numeric_limits<double>::infinity(), right = 0;
    for (const GraphBox& box : boxes_) left = std::min(left, box.x);
    for (GraphBox& box : boxes_) {
      box.x += graph_margin - left;
      right = std::max(right, box.x + box.width);
    }
    for (std::size_t i = 0; i < graph_.edges().size(); ++i) {
      const GraphEdge& edge = graph_.edges()[i];
      std::vector<GraphLayout::Point> route;
      if (edge.from < edge.to) {
        const GraphBox &from = boxes_[edge.from], &to = boxes_[edge.to];
        route.push_back({from.centre(), from.y + from.height});
        for (std::uint32_t passing : passing_[i])
          route.push_back({boxes_[passing].centre(), boxes_[passing].y + boxes_[passing].height / 2});
        route.push_back({to.centre(), to.y});
      }
      found.routes.push_back(std::move(route));
    }
    boxes_.resize(count_);
    found.boxes = std::move(boxes_);
    found.width = right + graph_margin + 24;
    found.height = height_ + graph_margin;
    return found;
  }

 private:
  void assign_layers() {
    layer_.assign(count_, 0);
    std::vector<bool> is_source(count_, true);
    // Edges are sorted by the node that they lead to, and lead to later nodes, but for those of loops.
    for (const GraphEdge& edge : graph_.edges()) {
      if (edge.from >= edge.to) continue;
      layer_[edge.to] = std::max(layer_[edge.to], layer_[edge.from] + 1);
      is_source[edge.to] = false;
    }
    // What uses nothing is drawn just above its first use.
    std::vector<std::uint32_t> first_use(count_, std::numeric_limits<std::uint32_t>::max());
    for (const GraphEdge& edge : graph_.edges())
      if (edge.from < edge.to) first_use[edge.from] = std::min(first_use[edge.from], layer_[edge.to]);
    for (std::size_t i = 0; i < count_; ++i)
      if (is_source[i] && first_use[i] != std::numeric_limits<std::uint32_t>::max()) layer_[i] = first_use[i] - 1;
  }

  void add_passing() {
    above_.resize(count_);
    below_.resize(count_);
    for (const GraphEdge& edge : graph_.edges()) {
      std::vector<std::uint32_t>& places = passing_.emplace_back();
      if (edge.from >= edge.to) continue;
      std::uint32_t before = edge.from;
      if (layer_[edge.to] - layer_[edge.from] <= longest_routed)
        for (std::uint32_t layer = layer_[edge.from] + 1; layer < layer_[edge.to]; ++layer) {
          auto passing = static_cast<std::uint32_t>(boxes_.size());
          boxes_.push_back({.width = passing_width});
          layer_.push_back(layer);
          above_.emplace_back();
          below_.emplace_back();
          join(before, passing);
          places.push_back(before = passing);
        }
      join(before, edge.to);
    }
  }
  void join(std::uint32_t upper, std::uint32_t lower) {
    below_[upper].push_back(lower);
    above_[lower].push_back(upper);
  }

  void fill() {
    for (std::uint32_t node = 0; node < boxes_.size(); ++node) {
      if (layer_[node] >= layers_.size()) layers_.resize(layer_[node] + 1);
      layers_[layer_[node]].push_back(node);
    }
    at_.resize(boxes_.size());
    for (const std::vector<std::uint32_t>& layer : layers_) number(layer);
  }
  void number(const std::vector<std::uint32_t>& layer) {
    // Between 0 and 1, so that layers of several sizes compare.
    for (std::size_t i = 0; i < layer.size(); ++i)
      at_[layer[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(layer.size());
  }

  template <class Value>
  static double mean_of(const std::vector<std::uint32_t>& neighbours, double otherwise, Value value) {
    if (neighbours.empty()) return otherwise;
    double sum = 0;
    for (std::uint32_t neighbour : neighbours) sum += value(neighbour);
    return sum / static_cast<double>(neighbours.size());
  }

  void order(bool downwards) {
    std::vector<double> wanted(boxes_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::vector<std::uint32_t>& layer = layers_[downwards ? i : layers_.size() - 1 - i];
      for (std::uint32_t node : layer)
        wanted[node] =
            mean_of(downwards ? above_[node] : below_[node], at_[node], [&](std::uint32_t n) { return at_[n]; });
      std::stable_sort(layer.begin(), layer.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return wanted[a] < wanted[b]; });
      number(layer);
    }
  }

  void place_vertically() {
    height_ = graph_margin;
    for (const std::vector<std::uint32_t>& layer : layers_) {
      double highest = 0, x = 0;
      for (std::uint32_t node : layer) {
        boxes_[node].x = x;
        boxes_[node].y = height_;
        x += boxes_[node].width + node_gap;
        highest = std::max(highest, boxes_[node].height);
      }
      for (std::uint32_t node : layer)
        if (node >= count_) boxes_[node].height = highest;
      height_ += highest + layer_gap;
    }
    height_ -= layer_gap;
  }

  // Moves the nodes of each layer towards their neighbours' mean, in their order and without overlaps: the mean of what
  // is pushed to the right and what is pushed to the left.
  void place(bool downwards) {
    std::vector<double> right, left;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::vector<std::uint32_t>& layer = layers_[downwards ? i : layers_.size() - 1 - i];
      right.clear();
      for (std::uint32_t node : layer) {
        const GraphBox& box = boxes_[node];
        right.push_back(mean_of(downwards ? above_[node] : below_[node], box.centre(),
                                [&](std::uint32_t n) { return boxes_[n].centre(); }) -
                        box.width / 2);
      }
      left = right;
      for (std::size_t k = 1; k < layer.size(); ++k)
        right[k] = std::max(right[k], right[k - 1] + boxes_[layer[k - 1]].width + node_gap);
      for (std::size_t k = layer.size() - 1; k > 0; --k)
        left[k - 1] = std::min(left[k - 1], left[k] - boxes_[layer[k - 1]].width - node_gap);
      for (std::size_t k = 0; k < layer.size(); ++k) boxes_[layer[k]].x = (left[k] + right[k]) / 2;
    }
  }

  const Graph& graph_;
  std::vector<GraphBox> boxes_;  // of the nodes, then of what passes
  std::size_t count_ = 0;        // of nodes
  std::vector<std::uint32_t> layer_;
  std::vector<std::vector<std::uint32_t>> passing_;  // of each edge
  std::vector<std::vector<std::uint32_t>> above_, below_;
  std::vector<std::vector<std::uint32_t>> layers_;
  std::vector<double> at_;  // the place within the layer, in (0, 1)
  double height_ = 0;
};

}  // namespace

GraphLayout laid_out(const Graph& graph, std::vector<GraphBox> sizes) {
  if (sizes.empty()) return {.width = 2 * graph_margin, .height = 2 * graph_margin};
  return Layers(graph, std::move(sizes)).layout();
}

}  // namespace reel::debug
