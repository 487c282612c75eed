#pragma once

#include <vector>

#include <reel/debug/graph.h>

namespace reel::debug {

/// Where a node of a graph is drawn, in pixels: its upper left corner and its size.
struct GraphBox {
  double x = 0, y = 0, width = 0, height = 0;
  double centre() const { return x + width / 2; }
};

/// A graph in layers.
struct GraphLayout {
  struct Point {
    double x, y;
  };
  std::vector<GraphBox> boxes = {};  // one for each node
  std::vector<std::vector<Point>> routes =
      {};  // one for each edge: the points that it passes; empty for one that goes up
  double width = 0, height = 0;
};

/// Places boxes of given sizes: each node is one layer or more below all that it uses, unless a loop leads back to it;
/// nodes of a layer are ordered by the mean place of their neighbours, several times from above and from below.
GraphLayout laid_out(const Graph& graph, std::vector<GraphBox> sizes);

}  // namespace reel::debug
