#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "models.h"

namespace reel_bench {

namespace {

struct State {
  at::Tensor h, c;
};

at::Tensor of(std::int64_t number) { return at::full({1}, number, at::kLong); }

struct Net {
  at::Tensor table, W_leaf, b_leaf, U, b, W_out, b_out;

  State leaf(const at::Tensor& words) const {
    at::Tensor e = at::embedding(table, words, -1, false, /*sparse=*/true);
    std::vector<at::Tensor> gates = at::addmm(b_leaf, e, W_leaf).chunk(3, 1);
    at::Tensor c = at::sigmoid(gates[0]) * at::tanh(gates[2]);
    return {at::sigmoid(gates[1]) * at::tanh(c), c};
  }
  State inner(const State& left, const State& right) const {
    std::vector<at::Tensor> gates = at::addmm(b, at::cat({left.h, right.h}, 1), U).chunk(5, 1);
    at::Tensor c =
        at::sigmoid(gates[0]) * at::tanh(gates[2]) + at::sigmoid(gates[3]) * left.c + at::sigmoid(gates[4]) * right.c;
    return {at::sigmoid(gates[1]) * at::tanh(c), c};
  }
  at::Tensor loss(const at::Tensor& h, const at::Tensor& labels) const {
    return at::cross_entropy_loss(at::addmm(b_out, h, W_out), labels, {}, at::Reduction::Sum);
  }

  State visit(const Tree& tree, const TreeNode& node, at::Tensor& total) const {
    State state = node.left < 0 ? leaf(of(node.word))
                                : inner(visit(tree, tree[static_cast<std::size_t>(node.left)], total),
                                        visit(tree, tree[static_cast<std::size_t>(node.right)], total));
    at::Tensor one = loss(state.h, of(node.label));
    total = total.defined() ? total + one : one;
    return state;
  }
};

// The nodes of a minibatch, ordered by height, and the positions of their children.
struct Levels {
  struct Level {
    std::vector<std::int64_t> left, right;
  };
  std::vector<std::int64_t> words, labels;
  std::vector<Level> levels;  // without the leaves

  Levels(const std::vector<Tree>& trees, std::size_t start, std::size_t end) {
    int highest = 0;
    for (std::size_t i = start; i < end; ++i) highest = std::max(highest, trees[i].back().height);
    std::vector<std::vector<std::int64_t>> places(end - start);
    for (std::size_t i = start; i < end; ++i) places[i - start].resize(trees[i].size());
    for (int height = 0; height <= highest; ++height) {
      Level level;
      for (std::size_t i = start; i < end; ++i)
        for (std::size_t node = 0; node < trees[i].size(); ++node) {
          const TreeNode& one = trees[i][node];
          if (one.height != height) continue;
          std::vector<std::int64_t>& place = places[i - start];
          place[node] = static_cast<std::int64_t>(labels.size());
          labels.push_back(one.label);
          if (height == 0) {
            words.push_back(one.word);
          } else {
            level.left.push_back(place[static_cast<std::size_t>(one.left)]);
            level.right.push_back(place[static_cast<std::size_t>(one.right)]);
          }
        }
      if (height > 0) levels.push_back(std::move(level));
    }
  }
};

at::Tensor minibatch_by_level(const Net& net, const std::vector<Tree>& trees, std::size_t start, std::size_t end) {
  Levels found(trees, start, end);
  State all = net.leaf(at::tensor(found.words, at::kLong));
  for (const Levels::Level& level : found.levels) {
    at::Tensor left = at::tensor(level.left, at::kLong), right = at::tensor(level.right, at::kLong);
    State state = net.inner({all.h.index_select(0, left), all.c.index_select(0, left)},
                            {all.h.index_select(0, right), all.c.index_select(0, right)});
    all = {at::cat({all.h, state.h}), at::cat({all.c, state.c})};
  }
  return net.loss(all.h, at::tensor(found.labels, at::kLong));
}

}  // namespace

TorchTreeTraining::TorchTreeTraining() {
  for (const tree_net::Parameter& one : tree_net::parameters) {
    std::vector<std::int64_t> sizes{one.columns};
    if (one.rows) sizes.insert(sizes.begin(), one.rows);
    parameters_.push_back(torch_drawn(one.seed, one.scale, sizes).requires_grad_());
  }
}

double TorchTreeTraining::epoch(const std::vector<Tree>& trees, int minibatch, bool by_level) {
  const std::vector<at::Tensor>& p = parameters_;
  Net net{p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
  double sum_of_losses = 0;
  for (std::size_t start = 0; start < trees.size(); start += static_cast<std::size_t>(minibatch)) {
    std::size_t end = std::min(start + static_cast<std::size_t>(minibatch), trees.size());
    at::Tensor total;
    if (by_level)
      total = minibatch_by_level(net, trees, start, end);
    else
      for (std::size_t i = start; i < end; ++i) net.visit(trees[i], trees[i].back(), total);
    sum_of_losses += total.item<double>();
    total.backward();
    at::NoGradGuard pause;
    for (at::Tensor parameter : parameters_) {
      parameter.add_(parameter.grad(), -tree_net::learning_rate);
      parameter.mutable_grad() = at::Tensor();
    }
  }
  return sum_of_losses;
}

Work torch_tree_lstm(int minibatch, bool by_level) {
  auto training = std::make_shared<TorchTreeTraining>();
  auto trees = std::make_shared<std::vector<Tree>>(sampled_trees());
  return [=] { return training->epoch(*trees, minibatch, by_level); };
}

}  // namespace reel_bench
