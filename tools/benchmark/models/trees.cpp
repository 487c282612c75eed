#include "trees.h"

#include <algorithm>

#include "drawn.h"

namespace reel_bench {

namespace {

// Appends a tree with the given number of leaves and returns the index of its root.
int build(Tree& tree, Splitmix& random, std::uint64_t leaves) {
  TreeNode node;
  if (leaves == 1) {
    node.word = static_cast<std::int64_t>(random.next() % tree_net::vocabulary);
    node.label = node.word % tree_net::classes;
  } else {
    std::uint64_t left_leaves = 1 + random.next() % (leaves - 1);
    node.left = build(tree, random, left_leaves);
    node.right = build(tree, random, leaves - left_leaves);
    const TreeNode &left = tree[static_cast<std::size_t>(node.left)],
                   &right = tree[static_cast<std::size_t>(node.right)];
    node.label = (left.label + right.label) % tree_net::classes;
    node.height = 1 + std::max(left.height, right.height);
  }
  tree.push_back(node);
  return static_cast<int>(tree.size()) - 1;
}

}  // namespace

std::vector<Tree> random_trees() {
  Splitmix random(42);
  std::vector<Tree> trees(256);
  for (Tree& tree : trees) build(tree, random, 5 + random.next() % 36);
  return trees;
}

std::vector<Tree> sampled_trees() {
  std::vector<Tree> all = random_trees(), sample;
  for (std::size_t i = 0; i < 25; ++i) sample.push_back(std::move(all[10 * i]));
  return sample;
}

}  // namespace reel_bench
