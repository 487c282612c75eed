// Learns to evaluate boolean expressions with a network whose shape is the expression's tree.
//
// The model is a native recursive function: a leaf is a learnt vector, an operator a small layer on its operands' vectors, and
// the vector at the root, which alone has a label, is classified as true or false. It trains on shallow trees and is tested on
// deeper ones; each tree has a shape of its own, so that no two tapes are alike. batch_map runs the nodes of a minibatch's trees
// together where that pays, from 68 hidden units on in minibatches of 16; with fewer it runs each at once.
//
// Paper: Socher et al., Parsing natural scenes and natural language with recursive neural networks (ICML 2011);
//        the task is in the spirit of Bowman et al., Recursive neural networks can learn logical semantics (2015).
// Command: tools/run tree_logic
// Result: right on all 1000 test trees of depth 5 to 12 after 1 s, for each of seeds 1 to 30; a constant guess on 50 to 54 %.

#include <map>
#include <random>

#include <reel/batching.h>

#include "expressions.h"
#include "training.h"

using namespace reel;
using samples::Expression, samples::Tree;

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
  std::string batching = "on";

  Options() { epochs = 6, batch = 16, learning_rate = 1e-2; }
  BatchOptions of_batches() const { return {.immediate = batching == "off"}; }
};

Tensor loss_of(const TreeModel& model, const std::vector<Tree>& trees, const Options& options) {
  std::vector<std::int64_t> values;
  for (const Tree& tree : trees) values.push_back(tree->value);
  auto run = [&](const Tree& tree) { return model(*tree); };
  return cross_entropy(concat(batch_map(trees, run, options.of_batches())), tensor(values));
}

struct Score {
  int trees = 0, right = 0, are_true = 0;

  void count(bool value, bool prediction) { ++trees, right += value == prediction, are_true += value; }
  std::vector<std::string> row(const std::string& depth) const {
    auto share = [&](int some) { return fmt::format("{:.2f} %", 100.0 * some / trees); };
    return {depth, std::to_string(trees), share(right), share(std::max(are_true, trees - are_true))};
  }
};

void test(const TreeModel& model, const std::vector<Tree>& trees, const std::string& name, const Options& options) {
  std::map<int, Score> by_depth;
  Score all;
  auto count = [&](const Tree& tree) {
    bool prediction = model.predicts(*tree);
    for (Score* score : {&by_depth[tree->depth], &all}) score->count(tree->value, prediction);
  };
  batch_map(trees, count, options.of_batches());
  std::vector<std::vector<std::string>> rows{{"depth", "trees", "accuracy", "constant guess"}};
  for (const auto& [depth, score] : by_depth) rows.push_back(score.row(std::to_string(depth)));
  rows.push_back(all.row(name));
  samples::print_results(rows);
}

void print_examples(const TreeModel& model, const std::vector<Tree>& trees) {
  fmt::print("\nexamples:\n");
  for (int left = 4; const Tree& tree : trees) {
    std::string text = samples::to_string(*tree);
    if (text.size() > 100 || left-- <= 0) continue;
    fmt::print("  {} = {}, predicted {}\n", text, tree->value, model.predicts(*tree));
  }
}

void run(Options options) {
  if (options.test_depth <= options.train_depth)
    throw std::runtime_error(
        fmt::format("the test trees (--test-depth {}) must be deeper than the training trees (--train-depth {}).",
                    options.test_depth, options.train_depth));
  manual_seed(options.seed);
  io::Contents file = samples::load(options, "tree_logic");
  if (!options.load.empty()) options.hidden = std::stoll(file.metadata["hidden"]);
  std::vector<Tree> own = options.test.empty() ? std::vector<Tree>() : samples::read_expressions(options.test);
  std::mt19937_64 random(options.seed), more(options.seed + 1);
  std::vector<Tree> trees = samples::grow_many(random, options.trees, 0, options.train_depth);
  std::vector<Tree> deeper =
      samples::grow_many(random, options.test_trees, options.train_depth + 1, options.test_depth);
  std::vector<Tree> dev = samples::grow_many(more, 500, 0, options.train_depth);
  TreeModel model(options.hidden);
  if (!options.load.empty()) io::load_into(model, file);

  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  data::Loader loader(trees, {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  auto step = [&](const std::vector<Tree>& batch) {
    Tape tape;
    Tensor loss = loss_of(model, batch, options);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), 1);
    adam.step();
    adam.zero_grad();
    return value;
  };
  std::string opening = fmt::format("{} training trees of depth 0 to {}, {} parameters", trees.size(),
                                    options.train_depth, model.parameter_count());
  io::Metadata about{{"sample", "tree_logic"}, {"hidden", std::to_string(options.hidden)}};
  samples::train({options, model, adam, "trees", opening, about}, loader, step, [&] {
    double loss = loss_of(model, dev, options).item();
    return samples::Reached{-loss, fmt::format("dev loss {:.6f}", loss)};
  });
  print_examples(model, deeper);
  if (!own.empty()) test(model, own, "test", options);
  test(model, deeper, "all", options);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line(
      "Learns to evaluate boolean expressions with a network whose shape is the expression's tree.", "tree_logic");
  samples::add_common_options(line, options, "trees",
                              "file of expressions to evaluate, one a line: (true and not false)");
  line.add_option("--trees", options.trees, "training trees", samples::at_least(1));
  line.add_option("--test-trees", options.test_trees, "test trees", samples::at_least(1));
  line.add_option("--train-depth", options.train_depth, "depth of the deepest training tree", samples::between(1, 12));
  line.add_option("--test-depth", options.test_depth, "depth of the deepest test tree", samples::between(2, 16));
  line.add_option("--hidden", options.hidden, "size of a node's vector", samples::at_least(1));
  line.add_option("--batching", options.batching, "on: nodes of several trees at once; off: tree by tree",
                  samples::one_of({"on", "off"}));
  return line.run(argc, argv, [&] { run(options); });
}
