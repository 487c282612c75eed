// Learns to evaluate boolean expressions with a network whose shape is the expression's tree.
//
// The model is a native recursive function: a leaf is a learnt vector, an operator a small layer on its operands' vectors, and
// the vector at the root, which alone has a label, is classified as true or false. It trains on shallow trees and is tested on
// deeper ones; each tree has a shape of its own, so that no two tapes are alike. With --batching on, batch_map runs the nodes
// of a minibatch's trees together: that pays from 256 hidden units on, below which an operator takes less than its grouping.
//
// Paper: Socher et al., Parsing natural scenes and natural language with recursive neural networks (ICML 2011);
//        the task is in the spirit of Bowman et al., Recursive neural networks can learn logical semantics (2015).
// Command: tools/run tree_logic
// Result: right on all 1000 test trees of depth 5 to 12 after 1 s, for each of seeds 1 to 30; a constant guess on 50 to 54 %.

#include <map>
#include <random>

#include <reel/batching.h>

#include "training.h"

using namespace reel;

struct Expression {
  enum class Kind { constant, negation, conjunction, disjunction };
  Kind kind;
  bool value;
  int depth;  ///< 0 for a constant
  std::shared_ptr<const Expression> left, right;
};
using Tree = std::shared_ptr<const Expression>;

struct TreeModel : nn::Module {
  nn::Embedding constants;
  nn::Linear negation, conjunction, disjunction, output;

  explicit TreeModel(std::int64_t hidden)
      : constants(*this, "constants", 2, hidden),
        negation(*this, "negation", hidden, hidden),
        conjunction(*this, "conjunction", 2 * hidden, hidden),
        disjunction(*this, "disjunction", 2 * hidden, hidden),
        output(*this, "output", hidden, 2) {}

  /// The vector (1, H) of an expression.
  Tensor encode(const Expression& e) const {
    if (e.kind == Expression::Kind::constant) return constants(tensor({std::int64_t{e.value}}));
    if (e.kind == Expression::Kind::negation) return tanh(negation(encode(*e.left)));
    Tensor operands = concat({encode(*e.left), encode(*e.right)}, 1);
    return tanh(e.kind == Expression::Kind::conjunction ? conjunction(operands) : disjunction(operands));
  }

  /// Logits (1, 2) of false and true.
  Tensor operator()(const Expression& e) const { return output(encode(e)); }

  bool predicts(const Expression& e) const {
    std::vector<float> logits = (*this)(e).to_vector<float>();
    return logits[1] > logits[0];
  }
};

struct Options : samples::RunOptions {
  int trees = 20000, test_trees = 1000, train_depth = 4, test_depth = 12;
  std::int64_t hidden = 16;
  std::string batching = "off";

  Options() { epochs = 6, batch = 16, learning_rate = 1e-2; }
  BatchOptions of_batches() const { return {.immediate = batching == "off"}; }
};

std::string to_string(const Expression& e) {
  if (e.kind == Expression::Kind::constant) return e.value ? "true" : "false";
  if (e.kind == Expression::Kind::negation) return "not " + to_string(*e.left);
  const char* word = e.kind == Expression::Kind::conjunction ? " and " : " or ";
  return "(" + to_string(*e.left) + word + to_string(*e.right) + ")";
}

/// A random tree of exactly the given depth. Conjunctions and disjunctions are equally likely, so that both values are.
Tree grow(std::mt19937_64& random, int depth) {
  auto below = [&](int bound) { return static_cast<int>(random() % static_cast<std::uint64_t>(bound)); };
  if (depth == 0) return std::make_shared<Expression>(Expression::Kind::constant, below(2) == 0, 0, nullptr, nullptr);
  if (below(4) == 0) {
    Tree operand = grow(random, depth - 1);
    return std::make_shared<Expression>(Expression::Kind::negation, !operand->value, depth, std::move(operand),
                                        nullptr);
  }
  // One side reaches the depth; the other may end anywhere above.
  Tree left = grow(random, depth - 1), right = grow(random, below(depth));
  if (below(2) == 0) std::swap(left, right);
  bool both = below(2) == 0, value = both ? left->value && right->value : left->value || right->value;
  auto kind = both ? Expression::Kind::conjunction : Expression::Kind::disjunction;
  return std::make_shared<Expression>(kind, value, depth, std::move(left), std::move(right));
}

/// Trees in equal numbers of each depth from `shallowest` to `deepest`.
std::vector<Tree> grow_many(std::mt19937_64& random, int count, int shallowest, int deepest) {
  std::vector<Tree> trees;
  for (int i = 0; i < count; ++i) trees.push_back(grow(random, shallowest + i % (deepest - shallowest + 1)));
  return trees;
}

void train_model(TreeModel& model, const std::vector<Tree>& trees, const Options& options) {
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  data::Loader loader(trees, {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  train::Interruption interruption;
  samples::Records records(options, {{"model", model}, {"adam", adam}, {"loader", loader}});
  std::int64_t epochs_left = std::max<std::int64_t>(options.epochs - loader.epoch(), 0);
  nn::Progress progress("training", epochs_left * std::ssize(trees) - loader.position() * options.batch, "trees");
  while (loader.epoch() < options.epochs)
    for (const std::vector<Tree>& batch : loader) {
      Tape tape;
      std::vector<std::int64_t> values;
      for (const Tree& tree : batch) values.push_back(tree->value);
      auto run = [&](const Tree& tree) { return model(*tree); };
      std::vector<Tensor> logits = batch_map(batch, run, options.of_batches());
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

  void count(bool value, bool prediction) { ++trees, right += value == prediction, are_true += value; }
  std::vector<std::string> row(const std::string& depth) const {
    auto share = [&](int some) { return fmt::format("{:.2f} %", 100.0 * some / trees); };
    return {depth, std::to_string(trees), share(right), share(std::max(are_true, trees - are_true))};
  }
};

void test(const TreeModel& model, const std::vector<Tree>& trees, const Options& options) {
  std::map<int, Score> by_depth;
  Score all;
  auto count = [&](const Tree& tree) {
    bool prediction = model.predicts(*tree);
    for (Score* score : {&by_depth[tree->depth], &all}) score->count(tree->value, prediction);
  };
  batch_map(trees, count, options.of_batches());
  std::vector<std::vector<std::string>> rows{{"depth", "trees", "accuracy", "constant guess"}};
  for (const auto& [depth, score] : by_depth) rows.push_back(score.row(std::to_string(depth)));
  rows.push_back(all.row("all"));
  samples::print_results(rows);
}

void print_examples(const TreeModel& model, const std::vector<Tree>& trees) {
  fmt::print("examples:\n");
  for (int left = 4; const Tree& tree : trees) {
    std::string text = to_string(*tree);
    if (text.size() > 100 || left-- <= 0) continue;
    fmt::print("  {} = {}, predicted {}\n", text, tree->value, model.predicts(*tree));
  }
}

void run(const Options& options) {
  if (options.test_depth <= options.train_depth)
    throw std::runtime_error(
        fmt::format("the test trees (--test-depth {}) must be deeper than the training trees (--train-depth {}).",
                    options.test_depth, options.train_depth));
  manual_seed(options.seed);
  std::mt19937_64 random(options.seed);
  std::vector<Tree> trees = grow_many(random, options.trees, 0, options.train_depth);
  std::vector<Tree> deeper = grow_many(random, options.test_trees, options.train_depth + 1, options.test_depth);
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
  line.add_option("--batching", options.batching, "on: nodes of several trees at once; off: tree by tree",
                  samples::one_of({"on", "off"}));
  line.add_option("--seed", options.seed, "of all random numbers", samples::at_least(0));
  line.add_option("--save", options.save, "file for the weights");
  line.add_option("--load", options.load, "file of weights to start with, of as many hidden units");
  samples::add_run_options(line, options);
  return line.run(argc, argv, [&] { run(options); });
}
