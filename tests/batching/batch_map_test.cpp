#include <reel/batching.h>
#include <reel/reel.h>

#include <random>
#include <vector>

#include "catch.h"
#include "checks.h"

// Trees of recursive calls.

using namespace reel;
using reel_test::draw;

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

TEST_CASE("a fused op reads rows that lie apart in one tensor as it does those of single examples") {
  manual_seed(5);
  Tensor W = draw({4, 12}).requires_grad(), U = draw({6, 20}).requires_grad(), bias = draw({20}).requires_grad();
  std::vector<Tensor> words{draw({3, 4}), draw({3, 4}), draw({3, 4}), draw({3, 4})};
  reel_test::check_as_immediate([&](const BatchOptions& options) {
    auto run = [&] {
      return batch_map(
          words,
          [&](const Tensor& x) {
            // All leaves at once: an example's leaves are rows of the leaves of all examples.
            Tensor a = matmul(x, W);
            LSTMState leaves = tree_lstm_cell(a);
            std::vector<Tensor> h = split(leaves.h, 1), c = split(leaves.c, 1);
            Tensor b = addmm(bias, concat({slice(h[0], 1, 0, 3), slice(h[1], 1, 0, 3)}, 1), U);
            return sum(tree_lstm_cell(b, {c[0], c[1]}).h);
          },
          options);
    };
    std::vector<Tensor> results = run();  // without a tape
    Tape tape;
    std::vector<Tensor> recorded = run();
    for (const Tensor& gradient : tape.gradient(sum(stack(recorded)), std::vector<Tensor>{W, U, bias}))
      results.push_back(gradient);
    results.insert(results.end(), recorded.begin(), recorded.end());
    return results;
  });
}
