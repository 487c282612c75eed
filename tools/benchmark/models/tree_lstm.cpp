#include "drawn.h"
#include "workloads.h"

namespace reel_bench {

using namespace reel;

namespace {

std::vector<Tensor> made_parameters() {
  std::vector<Tensor> made;
  for (const tree_net::Parameter& one : tree_net::parameters)
    made.push_back(drawn_tensor(one.seed, one.scale, one.rows ? Shape{one.rows, one.columns} : Shape{one.columns})
                       .requires_grad());
  return made;
}

// Evaluates trees node by node, each with its own ops.
class TreeEvaluation {
 public:
  TreeEvaluation(const std::vector<Tensor>& parameters, TreeForm form)
      : composed_(form == TreeForm::composed),
        table_(parameters[0]),
        W_leaf_(parameters[1]),
        b_leaf_(parameters[2]),
        U_(parameters[3]),
        b_(parameters[4]),
        W_out_(parameters[5]),
        b_out_(parameters[6]) {}

  LSTMState visit(const Tree& tree, const TreeNode& node) {
    LSTMState state = node.left < 0 ? leaf(node)
                                    : inner(visit(tree, tree[static_cast<std::size_t>(node.left)]),
                                            visit(tree, tree[static_cast<std::size_t>(node.right)]));
    Tensor loss =
        cross_entropy(addmm(b_out_, state.h, W_out_), tensor({node.label}), {.reduction = LossReduction::sum});
    total_ = total_.defined() ? total_ + loss : loss;
    return state;
  }
  const Tensor& total() const { return total_; }

 private:
  LSTMState leaf(const TreeNode& node) const {
    Tensor e = embedding(table_, tensor({node.word}), {.row_gradient = true});
    Tensor a = addmm(b_leaf_, e, W_leaf_);
    if (!composed_) return tree_lstm_cell(a);
    std::vector<Tensor> gates = chunk(a, 3, 1);
    Tensor c = sigmoid(gates[0]) * tanh(gates[2]);
    return {sigmoid(gates[1]) * tanh(c), c};
  }
  LSTMState inner(const LSTMState& left, const LSTMState& right) const {
    Tensor a = addmm(b_, concat({left.h, right.h}, 1), U_);
    if (!composed_) return tree_lstm_cell(a, {left.c, right.c});
    std::vector<Tensor> gates = chunk(a, 5, 1);
    Tensor c = sigmoid(gates[0]) * tanh(gates[2]) + sigmoid(gates[3]) * left.c + sigmoid(gates[4]) * right.c;
    return {sigmoid(gates[1]) * tanh(c), c};
  }

  bool composed_;
  const Tensor &table_, &W_leaf_, &b_leaf_, &U_, &b_, &W_out_, &b_out_;
  Tensor total_;
};

}  // namespace

TreeTraining::TreeTraining(double learning_rate)
    : parameters_(made_parameters()), sgd_(parameters_, {.learning_rate = learning_rate}) {}

double TreeTraining::epoch(const std::vector<Tree>& trees, int minibatch, TreeForm form) {
  double sum_of_losses = 0;
  for (std::size_t start = 0; start < trees.size(); start += static_cast<std::size_t>(minibatch)) {
    std::size_t end = std::min(start + static_cast<std::size_t>(minibatch), trees.size());
    Tape tape;
    TreeEvaluation evaluation(parameters_, form);
    for (std::size_t i = start; i < end; ++i) evaluation.visit(trees[i], trees[i].back());
    sum_of_losses += evaluation.total().item();
    tape.backward(evaluation.total());
    sgd_.step();
    sgd_.zero_grad();
  }
  return sum_of_losses;
}

Work tree_lstm(int minibatch, TreeForm form) {
  auto training = std::make_shared<TreeTraining>();
  auto trees = std::make_shared<std::vector<Tree>>(sampled_trees());
  return [=] { return training->epoch(*trees, minibatch, form); };
}

}  // namespace reel_bench
