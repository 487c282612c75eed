#pragma once

#include <array>
#include <cstdint>
#include <vector>

// The Tree-LSTM workload: hidden 150, embedding 300 at the leaves, vocabulary 10000, 5 classes with
// cross-entropy at every node, summed; plain gradient descent after each minibatch.
//
//     leaf    [i, o, u] = e W_leaf + b_leaf                  c = σ(i) tanh(u)
//     node    [i, o, u, f_l, f_r] = [h_l, h_r] U + b         c = σ(i) tanh(u) + σ(f_l) c_l + σ(f_r) c_r
//     both    h = σ(o) tanh(c)
//
// Source: Tai, Socher and Manning, Improved semantic representations from tree-structured long short-term memory
// networks (ACL 2015).

namespace reel_bench {

/// A node of a binary tree. Children precede their parent, so the last node is the root.
struct TreeNode {
  int left = -1, right = -1;  ///< indices of the children; −1 at a leaf
  std::int64_t word = 0;      ///< at a leaf
  std::int64_t label = 0;     ///< word mod 5, or the sum of the children's labels mod 5
  int height = 0;             ///< 0 at a leaf
};
using Tree = std::vector<TreeNode>;

/// The workload's 256 trees of 5 to 40 leaves.
std::vector<Tree> random_trees();
/// Every tenth tree, for one run of a benchmark.
std::vector<Tree> sampled_trees();

namespace tree_net {

inline constexpr std::int64_t vocabulary = 10'000, embedding_size = 300, hidden = 150, classes = 5;
inline constexpr float learning_rate = 0.005f;

/// A parameter: its first values are drawn(seed, scale, rows · columns).
struct Parameter {
  std::int64_t rows, columns;  ///< rows 0: a vector
  std::uint64_t seed;
  float scale;
};
inline constexpr std::array<Parameter, 7> parameters{{
    {vocabulary, embedding_size, 21, 0.1f},
    {embedding_size, 3 * hidden, 22, 0.08f},
    {0, 3 * hidden, 23, 0.08f},
    {2 * hidden, 5 * hidden, 24, 0.08f},
    {0, 5 * hidden, 25, 0.08f},
    {hidden, classes, 26, 0.08f},
    {0, classes, 27, 0.08f},
}};

/// The sums of the minibatches' losses in the first two epochs, computed with two independent libraries.
struct ExpectedLosses {
  int minibatch;
  std::array<double, 2> epochs;
};
inline constexpr std::array<ExpectedLosses, 2> expected_losses{
    {{1, {17944.455, 17939.707}}, {25, {17949.164, 17941.781}}}};

}  // namespace tree_net

}  // namespace reel_bench
