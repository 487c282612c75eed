#include <reel/batching.h>
#include <reel/reel.h>

#include <random>
#include <vector>

#include "catch.h"
#include "checks.h"

// Trees of recursive calls.

using namespace reel;

namespace {

struct Tree {
  int left = -1, right = -1;
  std::int64_t word = 0;
};

struct TreeModel {
  Tensor table = reel_test::draw({20, 3}).requires_grad(), W = (reel_test::draw({3, 9}) * 0.5).requires_grad(),
         U = (reel_test::draw({6, 15}) * 0.5).requires_grad(), bias = reel_test::draw({15}).requires_grad();

  std::vector<Tensor> parameters() const { return {table, W, U, bias}; }
  LSTMState leaf(std::int64_t word) const { return tree_lstm_cell(matmul(embedding(table, tensor({word})), W)); }
  LSTMState inner(const LSTMState& left, const LSTMState& right) const {
    return tree_lstm_cell(addmm(bias, concat({left.h, right.h}, 1), U), {left.c, right.c});
  }
};

using Nodes = std::vector<Tree>;

Nodes random_tree(std::mt19937_64& random, int leaves) {
  Nodes nodes;
  auto build = [&](auto&& self, int count) -> int {
    Tree node;
    if (count == 1) {
      node.word = static_cast<std::int64_t>(random() % 20);
    } else {
      int left = 1 + static_cast<int>(random() % static_cast<std::uint64_t>(count - 1));
      node.left = self(self, left);
      node.right = self(self, count - left);
    }
    nodes.push_back(node);
    return static_cast<int>(nodes.size()) - 1;
  };
  build(build, leaves);
  return nodes;
}

}  // namespace

TEST_CASE("a tree of recursive calls has the values and gradients of single examples") {
  manual_seed(1);
  TreeModel model;
  std::mt19937_64 random(2);
  std::vector<Nodes> trees;
  for (int i = 0; i < 12; ++i) trees.push_back(random_tree(random, 1 + static_cast<int>(random() % 9)));
  auto run = [&](const BatchOptions& options, bool siblings) {
    Tape tape;
    std::vector<Tensor> losses = batch_map(
        trees,
        [&](const Nodes& nodes) {
          auto encode = [&](auto&& self, int at) -> LSTMState {
            const Tree& node = nodes[static_cast<std::size_t>(at)];
            if (node.left < 0) return model.leaf(node.word);
            if (siblings) {
              auto [left, right] = both([&] { return self(self, node.left); }, [&] { return self(self, node.right); });
              return model.inner(left, right);
            }
            LSTMState left = self(self, node.left);
            return model.inner(left, self(self, node.right));
          };
          return sum(square(encode(encode, static_cast<int>(nodes.size()) - 1).h));
        },
        options);
    Tensor all = stack(losses);
    std::vector<Tensor> results = tape.gradient(sum(all), model.parameters());
    results.push_back(all);
    return results;
  };
  std::vector<Tensor> expected = run({.immediate = true}, false);
  for (bool siblings : {false, true})
    for (std::int64_t in_flight : {1, 3, 256}) {
      CAPTURE(siblings, in_flight);
      reel_test::check_close(run({.in_flight = in_flight}, siblings), expected);
    }
}
