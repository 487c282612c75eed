#include <algorithm>

#include "drawn.h"
#include "examples.h"

namespace reel_bench {

using namespace reel;

namespace {

struct Net {
  const Tensor &table, &W_leaf, &b_leaf, &U, &b, &W_out, &b_out;

  explicit Net(const std::vector<Tensor>& p)
      : table(p[0]), W_leaf(p[1]), b_leaf(p[2]), U(p[3]), b(p[4]), W_out(p[5]), b_out(p[6]) {}

  LSTMState leaf(const Tensor& words) const {
    return tree_lstm_cell(addmm(b_leaf, embedding(table, words, {.row_gradient = true}), W_leaf));
  }
  LSTMState inner(const LSTMState& left, const LSTMState& right) const {
    return tree_lstm_cell(addmm(b, concat({left.h, right.h}, 1), U), {left.c, right.c});
  }
  Tensor logits(const Tensor& h) const { return addmm(b_out, h, W_out); }
  Tensor loss(const Tensor& logits, const Tensor& labels) const {
    return cross_entropy(logits, labels, {.reduction = LossReduction::sum});
  }
};

// One tree, node by node: the code of a single example.
class TreeVisit {
 public:
  TreeVisit(const Net& net, const Tree& tree, bool siblings, ExtraCells* extra, std::size_t index)
      : net_(net), tree_(tree), siblings_(siblings), extra_(extra), index_(index) {}

  Tensor loss() { return visit(static_cast<int>(tree_.size()) - 1).loss; }

 private:
  /// A node's state, and the loss of its subtree.
  struct Visited {
    LSTMState state;
    Tensor loss;
  };
  Visited visit(int index) {
    const TreeNode& node = tree_[static_cast<std::size_t>(index)];
    Tensor label = tensor({node.label});
    if (node.left < 0) {
      LSTMState state = net_.leaf(tensor({node.word}));
      Tensor loss = net_.loss(net_.logits(state.h), label);
      return {std::move(state), std::move(loss)};
    }
    auto [left, right] = children(node);
    LSTMState state = net_.inner(left.state, right.state);
    Tensor loss = net_.loss(net_.logits(state.h), label) + left.loss + right.loss;
    if (extra_ && wants_extra(static_cast<std::size_t>(index), state.h)) state = net_.inner(state, right.state);
    return {std::move(state), std::move(loss)};
  }
  std::pair<Visited, Visited> children(const TreeNode& node) {
    if (siblings_) return both([&] { return visit(node.left); }, [&] { return visit(node.right); });
    Visited left = visit(node.left);
    return {std::move(left), visit(node.right)};
  }
  bool wants_extra(std::size_t node, const Tensor& h) {
    std::uint8_t& wanted = extra_->of_tree[index_][node];
    if (extra_->source == ExtraCells::Source::predicted) wanted = argmax(h).item<std::int64_t>() % 2 == 0;
    return wanted != 0;
  }

  const Net& net_;
  const Tree& tree_;
  bool siblings_;
  ExtraCells* extra_;
  std::size_t index_;
};

// The nodes of a minibatch by their depth. A level's nodes are in the order of their parents, left before right; its
// leaves are rows of the product for all leaves.
struct Levels {
  struct Level {
    std::vector<std::int64_t> order;  // of each node: its row in the level's leaves, followed by its inner nodes
    std::int64_t leaves = 0, inner = 0;
  };
  std::vector<std::int64_t> words, labels;  // labels: of all leaves, then of all inner nodes, the deepest first
  std::vector<Level> levels;                // the roots first

  explicit Levels(std::span<const Tree> trees) {
    using Nodes = std::vector<std::pair<const Tree*, const TreeNode*>>;
    Nodes nodes;
    for (const Tree& tree : trees) nodes.emplace_back(&tree, &tree.back());
    std::vector<Nodes> inner_nodes;
    while (!nodes.empty()) {
      Level level;
      Nodes inner, next;
      for (const auto& one : nodes)
        if (one.second->left < 0) {
          level.order.push_back(level.leaves++);
          words.push_back(one.second->word);
          labels.push_back(one.second->label);
        } else {
          level.order.push_back(-1);
          inner.push_back(one);
        }
      for (std::int64_t& row : level.order)
        if (row < 0) row = level.leaves + level.inner++;
      for (auto [tree, node] : inner)
        for (int child : {node->left, node->right}) next.emplace_back(tree, &(*tree)[static_cast<std::size_t>(child)]);
      levels.push_back(std::move(level));
      inner_nodes.push_back(std::move(inner));
      nodes = std::move(next);
    }
    for (std::size_t depth = levels.size(); depth-- > 0;)
      for (auto [tree, node] : inner_nodes[depth]) labels.push_back(node->label);
  }
};

// Each level's inner nodes are one product. Their children are all of the next level, so that a state is moved once: from
// its level's leaves and inner nodes into the order of its parents.
Tensor loss_by_level(const Net& net, std::span<const Tree> trees) {
  Levels found(trees);
  LSTMState leaves = net.leaf(tensor(found.words));
  std::vector<Tensor> shown{leaves.h};
  std::int64_t end = std::ssize(found.words);
  LSTMState inner;
  for (std::size_t depth = found.levels.size() - 1; depth > 0; --depth) {
    const Levels::Level& level = found.levels[depth];
    std::int64_t start = end - level.leaves;
    auto in_order = [&](const Tensor& of_leaves, const Tensor& of_inner, const Tensor& order) {
      Tensor rows = slice(of_leaves, 0, start, end);
      if (level.inner == 0) return rows;
      return take(level.leaves == 0 ? of_inner : concat({rows, of_inner}), order, 0);
    };
    Tensor order = tensor(level.order);
    std::int64_t parents = std::ssize(level.order) / 2;
    Tensor h = reshape(in_order(leaves.h, inner.h, order), {parents, 2 * tree_net::hidden});
    Tensor c = reshape(in_order(leaves.c, inner.c, order), {parents, 2 * tree_net::hidden});
    std::vector<Tensor> c_of = chunk(c, 2, 1);
    inner = tree_lstm_cell(addmm(net.b, h, net.U), {c_of[0], c_of[1]});
    shown.push_back(inner.h);
    end = start;
  }
  return net.loss(net.logits(concat(shown)), tensor(found.labels));
}

// Accumulates the gradients of a minibatch from as many trees at a time as the caches hold the states of.
double accumulate_by_level(const Net& net, std::span<const Tree> trees) {
  constexpr std::size_t at_once = 64;
  double sum_of_losses = 0;
  for (std::size_t start = 0; start < trees.size(); start += at_once) {
    Tape tape;
    Tensor loss = loss_by_level(net, trees.subspan(start, std::min(at_once, trees.size() - start)));
    sum_of_losses += loss.item();
    tape.backward(loss);
  }
  return sum_of_losses;
}

double accumulate_by_batch_map(const Net& net, std::span<const Tree> trees, bool siblings, const BatchOptions& options,
                               ExtraCells* extra, std::size_t start) {
  Tape tape;
  auto loss = [&](const Tree& tree) {
    return TreeVisit(net, tree, siblings, extra, start + static_cast<std::size_t>(&tree - trees.data())).loss();
  };
  Tensor total = sum(stack(batch_map(trees, loss, options)));
  double sum_of_losses = total.item();
  tape.backward(total);
  return sum_of_losses;
}

}  // namespace

ExtraCells::ExtraCells(const std::vector<Tree>& trees) {
  for (const Tree& tree : trees) of_tree.emplace_back(tree.size());
}

double TreeTraining::epoch_in_batches(const std::vector<Tree>& trees, int minibatch, TreeBatching form,
                                      const BatchOptions& options, ExtraCells* extra) {
  Net net(parameters_);
  double sum_of_losses = 0;
  for (std::size_t start = 0; start < trees.size(); start += static_cast<std::size_t>(minibatch)) {
    std::size_t count = std::min(static_cast<std::size_t>(minibatch), trees.size() - start);
    std::span<const Tree> some(trees.data() + start, count);
    sum_of_losses += form == TreeBatching::by_level
                         ? accumulate_by_level(net, some)
                         : accumulate_by_batch_map(net, some, form == TreeBatching::siblings, options, extra, start);
    sgd_.step();
    sgd_.zero_grad();
  }
  return sum_of_losses;
}

Work single_trees(const BatchOptions& options) {
  auto training = std::make_shared<TreeTraining>();
  auto trees = std::make_shared<std::vector<Tree>>(sampled_trees());
  return [=] { return training->epoch_in_batches(*trees, 1, TreeBatching::siblings, options); };
}

}  // namespace reel_bench
