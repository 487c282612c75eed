// Learns to evaluate boolean expressions with a network whose shape is the expression's tree.
//
// The model is a native recursive function: a leaf is a learnt vector, an operator a small layer on the vectors of its
// operands, and the vector at the root is classified as true or false. Only the root has a label. It trains on
// shallow trees and is tested on deeper ones than any it has seen; each tree has a shape of its own, so that no two
// tapes are alike. With --batching on, batch_map runs the nodes of a minibatch's trees together: that pays from 256 hidden
// units on, below which an operator takes less time than its grouping.
//
// Paper: Socher et al., Parsing natural scenes and natural language with recursive neural networks (ICML 2011);
//        the task is in the spirit of Bowman et al., Recursive neural networks can learn logical semantics (2015).
// Command: tools/run tree_logic
// Result: after 1 s it is right on all of the 1000 test trees of depth 5 to 12, for each of the seeds 1 to 30; a constant
//         guess is right on 50 to 54 %.

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <reel/batching.h>
#include <reel/reel.h>

#include "training.h"

using namespace reel;

struct Options : samples::RunOptions {
  int trees = 20000;
  int test_trees = 1000;
  int train_depth = 4;
  int test_depth = 12;
  std::int64_t hidden = 16;
  std::string batching = "off";

  BatchOptions of_batches() const { return {.immediate = batching == "off"}; }
};

struct Expression {
  enum class Kind { constant, negation, conjunction, disjunction };
  Kind kind;
  bool value;
  int depth = 0;  ///< 0 for a constant
  std::unique_ptr<Expression> left, right;
};

using Tree = std::unique_ptr<Expression>;

std::string to_string(const Expression& e) {
  switch (e.kind) {
    case Expression::Kind::constant: return e.value ? "true" : "false";
    case Expression::Kind::negation: return "not " + to_string(*e.left);
    default: break;
  }
  const char* word = e.kind == Expression::Kind::conjunction ? " and " : " or ";
  return "(" + to_string(*e.left) + word + to_string(*e.right) + ")";
}

/// Random trees from a seed. Conjunctions and disjunctions are equally likely, so that both values are.
class Forest {
 public:
  explicit Forest(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  /// A tree of exactly the given depth.
  Tree grow(int depth) {
    if (depth == 0) return make(Expression::Kind::constant, below(2) == 0, nullptr, nullptr);
    if (below(4) == 0) {
      Tree operand = grow(depth - 1);
      bool value = !operand->value;
      return make(Expression::Kind::negation, value, std::move(operand), nullptr);
    }
    // One side reaches the depth; the other may end anywhere above.
    Tree left = grow(depth - 1), right = grow(static_cast<int>(below(static_cast<std::uint64_t>(depth))));
    if (below(2) == 0) std::swap(left, right);
    bool both = below(2) == 0;
    bool value = both ? left->value && right->value : left->value || right->value;
    return make(both ? Expression::Kind::conjunction : Expression::Kind::disjunction, value, std::move(left),
                std::move(right));
  }

  /// Trees in equal numbers of each depth from `shallowest` to `deepest`.
  std::vector<Tree> grow_many(int count, int shallowest, int deepest) {
    std::vector<Tree> trees;
    for (int i = 0; i < count; ++i) trees.push_back(grow(shallowest + i % (deepest - shallowest + 1)));
    return trees;
  }

 private:
  static Tree make(Expression::Kind kind, bool value, Tree left, Tree right) {
    int depth = left ? 1 + std::max(left->depth, right ? right->depth : 0) : 0;
    return std::make_unique<Expression>(Expression{kind, value, depth, std::move(left), std::move(right)});
  }

  std::mt19937_64 random_;
};

struct TreeModel : nn::Module {
  nn::Embedding constants;
  nn::Linear negation, conjunction, disjunction;
  nn::Linear output;

  explicit TreeModel(std::int64_t hidden)
      : constants(*this, "constants", 2, hidden),
        negation(*this, "negation", hidden, hidden),
        conjunction(*this, "conjunction", 2 * hidden, hidden),
        disjunction(*this, "disjunction", 2 * hidden, hidden),
        output(*this, "output", hidden, 2) {}

  /// The vector (1, H) of an expression.
  Tensor encode(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::constant: return constants(tensor({std::int64_t{e.value}}));
      case Expression::Kind::negation: return tanh(negation(encode(*e.left)));
      case Expression::Kind::conjunction: return tanh(conjunction(encode_operands(e)));
      case Expression::Kind::disjunction: return tanh(disjunction(encode_operands(e)));
    }
    return {};
  }
  Tensor encode_operands(const Expression& e) const { return concat({encode(*e.left), encode(*e.right)}, 1); }

  /// Logits (1, 2) of false and true.
  Tensor operator()(const Expression& e) const { return output(encode(e)); }

  bool predicts(const Expression& e) const {
    std::vector<float> logits = (*this)(e).to_vector<float>();
    return logits[1] > logits[0];
  }
};

void train_model(TreeModel& model, const std::vector<Tree>& trees, const Options& options) {
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  auto expressions = data::transformed(trees, [](const Tree& tree) -> const Expression* { return tree.get(); });
  data::Loader loader(expressions, {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  train::Interruption interruption;
  samples::Records records(options, {{"model", model}, {"adam", adam}, {"loader", loader}});
  std::int64_t epochs_left = std::max<std::int64_t>(options.epochs - loader.epoch(), 0);
  nn::Progress progress("training", epochs_left * std::ssize(trees) - loader.position() * options.batch, "trees");
  while (loader.epoch() < options.epochs)
    for (const std::vector<const Expression*>& batch : loader) {
      Tape tape;
      std::vector<Tensor> logits = batch_map(
          batch, [&](const Expression* e) { return model(*e); }, options.of_batches());
      std::vector<std::int64_t> values;
      for (const Expression* e : batch) values.push_back(e->value);
      Tensor loss = cross_entropy(concat(logits), tensor(values));
      double value = loss.item();
      train::check_loss(value);
      tape.backward(loss);
      optim::clip_grad_norm(adam.parameters(), 1);
      adam.step();
      adam.zero_grad();
      progress.advance(std::ssize(batch), value);
      records.after_step(value);
    }
  records.after_training();
  progress.clear();
  fmt::print("training loss {:.4f} after {:.1f} s\n\n", progress.loss(), progress.seconds());
}

struct Score {
  int trees = 0, right = 0, are_true = 0;
  void count(bool value, bool prediction) {
    ++trees;
    right += value == prediction;
    are_true += value;
  }
  double accuracy() const { return 100.0 * right / trees; }
  double constant_accuracy() const { return 100.0 * std::max(are_true, trees - are_true) / trees; }
};

void print_row(const std::string& depth, const Score& score) {
  fmt::print("{:>9}  {:>6}  {:>8.2f} %  {:>14.2f} %\n", depth, score.trees, score.accuracy(),
             score.constant_accuracy());
}

void test(const TreeModel& model, const std::vector<Tree>& trees, const Options& options) {
  std::map<int, Score> by_depth;
  Score all;
  auto count = [&](const Tree& tree) {
    bool prediction = model.predicts(*tree);
    by_depth[tree->depth].count(tree->value, prediction);
    all.count(tree->value, prediction);
  };
  batch_map(trees, count, options.of_batches());
  fmt::print("{:>9}  {:>6}  {:>10}  {:>16}\n", "depth", "trees", "accuracy", "constant guess");
  for (const auto& [depth, score] : by_depth) print_row(std::to_string(depth), score);
  print_row("all", all);
}

void print_examples(const TreeModel& model, const std::vector<Tree>& trees) {
  fmt::print("examples:\n");
  int left = 4;
  for (const Tree& tree : trees) {
    std::string text = to_string(*tree);
    if (text.size() > 100 || left == 0) continue;
    fmt::print("  {} = {}, predicted {}\n", text, tree->value, model.predicts(*tree));
    --left;
  }
  fmt::print("\n");
}

void run(const Options& options) {
  if (options.test_depth <= options.train_depth)
    throw std::runtime_error(
        fmt::format("the test trees (--test-depth {}) must be deeper than the training trees "
                    "(--train-depth {}).",
                    options.test_depth, options.train_depth));
  manual_seed(options.seed);
  Forest forest(options.seed);
  std::vector<Tree> trees = forest.grow_many(options.trees, 0, options.train_depth);
  std::vector<Tree> deeper = forest.grow_many(options.test_trees, options.train_depth + 1, options.test_depth);
  TreeModel model(options.hidden);
  if (!options.load.empty()) io::load_into(model, options.load);
  if (!options.save.empty()) io::check_save(options.save, model);
  fmt::print("{} training trees of depth 0 to {}, {} parameters\n", trees.size(), options.train_depth,
             model.parameter_count());
  train_model(model, trees, options);
  if (!options.save.empty()) io::save(options.save, model);
  print_examples(model, deeper);
  test(model, deeper, options);
}

int main(int argc, char** argv) {
  Options options;
  options.epochs = 6;
  options.batch = 16;
  options.learning_rate = 1e-2;
  samples::CommandLine line(
      "Learns to evaluate boolean expressions with a network whose shape is the expression's tree.", "tree_logic");
  line.add_option("--epochs", options.epochs, "passes over the training trees; 0 trains nothing", samples::at_least(0));
  line.add_option("--trees", options.trees, "training trees", samples::at_least(1));
  line.add_option("--test-trees", options.test_trees, "test trees", samples::at_least(1));
  line.add_option("--train-depth", options.train_depth, "depth of the deepest training tree", samples::between(1, 12));
  line.add_option("--test-depth", options.test_depth, "depth of the deepest test tree", samples::between(2, 16));
  line.add_option("--batch", options.batch, "trees per step", samples::at_least(1));
  line.add_option("--hidden", options.hidden, "size of a node's vector", samples::at_least(1));
  line.add_option("--learning-rate", options.learning_rate, "Adam's", samples::at_least(0));
  line.add_option("--batching", options.batching, "on: nodes of several trees at once; off: one tree after the other",
                  samples::one_of({"on", "off"}));
  line.add_option("--seed", options.seed, "of all random numbers", samples::at_least(0));
  line.add_option("--save", options.save, "file for the weights");
  line.add_option("--load", options.load, "file of weights to start with, of as many hidden units");
  samples::add_run_options(line, options);
  return line.run(argc, argv, [&] { run(options); });
}
