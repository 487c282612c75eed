// Learns the sentiment of every phrase of a sentence with an LSTM that runs over the sentence's parse tree.
//
// The model is a native recursive function: a leaf's memory comes from its word, that of an inner node from its children,
// and each node's vector is classified as one of five sentiments, from very negative to very positive. Each node has a label.
// The recursion is written for one tree; batch_map runs the nodes of a minibatch's trees together.
// Words are looked up in a table; a step updates only the rows of its words.
//
// Papers: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (ACL 2015);
//         Socher et al., Recursive deep models for semantic compositionality over a sentiment treebank (EMNLP 2013).
// Data: nlp.stanford.edu/sentiment, trainDevTestTrees_PTB.zip; without --train, phrases of a small made-up grammar.
// Command: tools/run tree_lstm --train train.txt --dev dev.txt [--cell child_sum]
// Result: after 10 epochs in 47 s on one thread, the roots of the dev trees: 48.3 % of five sentiments, 86.9 % of two
//         (AVX-512, seed 2; seed 1 ends at 43.7 % and 80.5 %, seed 3 at 48.1 % and 86.1 %; --batching off takes 65 s).

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <reel/batching.h>
#include <reel/reel.h>

#include "command_line.h"

using namespace reel;

struct Options {
  std::string train, dev, test, save, load;
  std::string cell = "binary";
  std::int64_t hidden = 150;
  std::int64_t embedding = 300;
  std::int64_t batch = 25;
  int epochs = 10;
  double learning_rate = 0.05;
  double embedding_rate = 0.1;
  double weight_decay = 1e-4;
  double dropout = 0.5;
  std::string batching = "on";
  std::uint64_t seed = 1;
};

constexpr std::int64_t sentiments = 5, neutral = 2;

/// A sentence: its nodes, children before their parent.
struct Tree {
  struct Node {
    std::int64_t label;
    int left = -1, right = -1;  ///< -1: a leaf
    int leaf = -1;              ///< which of the words it is
  };
  std::vector<Node> nodes;
  std::vector<std::string> words;
  std::int64_t root_label() const { return nodes.back().label; }
};

/// Reads "(3 (2 a) (3 (3 good) (2 film)))".
class TreeReader {
 public:
  TreeReader(std::string_view text, std::string place) : text_(text), place_(std::move(place)) {}

  Tree read() {
    read_node(0);
    skip_spaces();
    if (at_ != text_.size()) refuse("text behind the sentence");
    return std::move(tree_);
  }

 private:
  // Far deeper than any sentence, and shallow enough for the stack.
  static constexpr int deepest = 1000;

  int read_node(int depth) {
    if (depth > deepest) refuse(fmt::format("a tree deeper than {}", deepest));
    expect('(');
    skip_spaces();
    if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '4') refuse("no label from 0 to 4 behind '('");
    Tree::Node node{.label = text_[at_++] - '0'};
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '(') {
      node.left = read_node(depth + 1);
      skip_spaces();
      node.right = read_node(depth + 1);
    } else {
      node.leaf = static_cast<int>(tree_.words.size());
      tree_.words.push_back(read_word());
    }
    expect(')');
    tree_.nodes.push_back(node);
    return static_cast<int>(tree_.nodes.size()) - 1;
  }
  std::string read_word() {
    std::string word;
    for (; at_ < text_.size() && text_[at_] != ')' && text_[at_] != '(' && !is_space(text_[at_]); ++at_)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at_])));
    if (word.empty()) refuse("a leaf without a word");
    return word;
  }
  void expect(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) refuse(fmt::format("no '{}'", wanted));
    ++at_;
  }
  static bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  void skip_spaces() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(
        fmt::format("{}: {} at character {}; a line is one tree, as in (3 (2 a) (3 film)).", place_, what, at_ + 1));
  }

  std::string_view text_;
  std::string place_;
  std::size_t at_ = 0;
  Tree tree_;
};

std::vector<Tree> read_trees(const std::string& path) {
  std::vector<std::string> lines = io::read_lines(path);
  std::vector<Tree> trees;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find_first_not_of(" \t\r") != std::string::npos)
      trees.push_back(TreeReader(lines[i], fmt::format("{}:{}", io::printable(path), i + 1)).read());
  if (trees.empty()) throw std::runtime_error(fmt::format("there is no tree in '{}'.", io::printable(path)));
  return trees;
}

/// Phrases whose sentiment follows from their words: "very" strengthens, "not" inverts, two phrases average.
class Grammar {
 public:
  explicit Grammar(std::uint64_t seed) : random_(seed) {}

  std::vector<Tree> trees(int count) {
    std::vector<Tree> made(static_cast<std::size_t>(count));
    for (Tree& tree : made) grow(tree, 4);
    return made;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  static int leaf(Tree& tree, const std::string& word, std::int64_t label) {
    tree.nodes.push_back({.label = label, .leaf = static_cast<int>(tree.words.size())});
    tree.words.push_back(word);
    return static_cast<int>(tree.nodes.size()) - 1;
  }
  static int join(Tree& tree, int left, int right, std::int64_t label) {
    tree.nodes.push_back({.label = label, .left = left, .right = right});
    return static_cast<int>(tree.nodes.size()) - 1;
  }
  int grow(Tree& tree, int depth) {
    static const std::vector<std::string> words[] = {
        {"awful", "dreadful"}, {"bad", "dull"}, {"film", "plot", "actor"}, {"good", "warm"}, {"superb", "brilliant"}};
    std::size_t kind = depth == 0 ? 0 : below(4);
    if (kind == 0) {
      std::size_t label = below(sentiments);
      return leaf(tree, words[label][below(words[label].size())], static_cast<std::int64_t>(label));
    }
    if (kind == 3) {
      int left = grow(tree, depth - 1), right = grow(tree, depth - 1);
      return join(tree, left, right, (label_of(tree, left) + label_of(tree, right)) / 2);
    }
    int word = leaf(tree, kind == 1 ? "not" : "very", neutral), phrase = grow(tree, depth - 1);
    std::int64_t from = label_of(tree, phrase);
    std::int64_t stronger = from + (from > neutral) - (from < neutral);
    return join(tree, word, phrase, kind == 1 ? sentiments - 1 - from : std::clamp<std::int64_t>(stronger, 0, 4));
  }
  static std::int64_t label_of(const Tree& tree, int node) { return tree.nodes[static_cast<std::size_t>(node)].label; }

  std::mt19937_64 random_;
};

/// The ids of words; 0: any word that is not in the training set.
struct Vocabulary {
  std::map<std::string, std::int64_t> numbers;

  void add(const std::string& word) { numbers.try_emplace(word, size()); }
  /// The words in the order of their ids, from 1 on.
  std::vector<std::string> words() const {
    std::vector<std::string> words(numbers.size());
    for (const auto& [word, number] : numbers) words[static_cast<std::size_t>(number) - 1] = word;
    return words;
  }
  std::int64_t operator[](const std::string& word) const {
    auto found = numbers.find(word);
    return found == numbers.end() ? 0 : found->second;
  }
  std::int64_t size() const { return std::ssize(numbers) + 1; }
};

struct SentimentModel : nn::Module {
  nn::Embedding words;
  std::optional<nn::NaryTreeLSTM> binary;  // one of the two
  std::optional<nn::ChildSumTreeLSTM> child_sum;
  nn::Linear output;
  double dropped;

  SentimentModel(std::int64_t vocabulary, const Options& o)
      : words(*this, "words", vocabulary, o.embedding, {.row_gradient = true}),
        output(*this, "output", o.hidden, sentiments),
        dropped(o.dropout) {
    if (o.cell == "binary")
      binary.emplace(*this, "binary", o.embedding, o.hidden, 2);
    else
      child_sum.emplace(*this, "child_sum", o.embedding, o.hidden);
  }

  Tensor drop(const Tensor& x) const { return is_training() ? dropout(x, {.probability = dropped}) : x; }
  LSTMState cell(const Tensor& x, std::initializer_list<LSTMState> children = {}) const {
    if (binary) return (*binary)(x, children);
    return (*child_sum)(x, children);  // NOLINT(bugprone-unchecked-optional-access): one of the two is there
  }

  /// Returns the state of a node, given those of the leaves; stores the vectors of the node and its descendants.
  LSTMState encode(const Tree& tree, int number, const std::vector<LSTMState>& leaves,
                   std::vector<Tensor>& shown) const {
    const Tree::Node& node = tree.nodes[static_cast<std::size_t>(number)];
    LSTMState state;
    if (node.leaf >= 0) {
      state = leaves[static_cast<std::size_t>(node.leaf)];
    } else {
      LSTMState left = encode(tree, node.left, leaves, shown), right = encode(tree, node.right, leaves, shown);
      state = cell(nn::no_input, {left, right});
    }
    shown.push_back(state.h);
    return state;
  }
  /// Logits (nodes, 5), in the order of the nodes, from the ids of the words.
  Tensor operator()(const Tree& tree, const Tensor& numbers) const {
    LSTMState all = cell(drop(words(numbers)));  // (words, H): all leaves at once
    std::vector<Tensor> h = split(all.h, 1), c = split(all.c, 1), shown;
    std::vector<LSTMState> leaves;
    for (std::size_t i = 0; i < h.size(); ++i) leaves.push_back({h[i], c[i]});
    encode(tree, static_cast<int>(tree.nodes.size()) - 1, leaves, shown);
    return output(drop(concat(shown)));
  }
};

/// (words)
Tensor numbers_of(const Tree& tree, const Vocabulary& vocabulary) {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : tree.words) numbers.push_back(vocabulary[word]);
  return tensor(numbers);
}

/// Sentiments (nodes).
Tensor labels_of(const Tree& tree) {
  std::vector<std::int64_t> labels;
  for (const Tree::Node& node : tree.nodes) labels.push_back(node.label);
  return tensor(labels);
}

/// The numbers of sentences and of phrases that are classified correctly.
struct Score {
  std::int64_t roots = 0, right_roots = 0, sided = 0, right_sides = 0, nodes = 0, right_nodes = 0;

  void count(const Tree& tree, const std::vector<float>& logits) {
    for (std::size_t i = 0; i < tree.nodes.size(); ++i)
      right_nodes += best(&logits[i * sentiments]) == tree.nodes[i].label;
    nodes += static_cast<std::int64_t>(tree.nodes.size());
    const float* root = &logits[(tree.nodes.size() - 1) * sentiments];
    ++roots;
    right_roots += best(root) == tree.root_label();
    if (tree.root_label() == neutral) return;
    ++sided;
    right_sides += (odds(root, 3) > odds(root, 0)) == (tree.root_label() > neutral);
  }
  double fine() const { return 100.0 * static_cast<double>(right_roots) / static_cast<double>(roots); }
  double binary() const {
    return 100.0 * static_cast<double>(right_sides) / static_cast<double>(std::max<std::int64_t>(sided, 1));
  }
  double phrases() const { return 100.0 * static_cast<double>(right_nodes) / static_cast<double>(nodes); }

 private:
  static std::int64_t best(const float* logits) { return std::max_element(logits, logits + sentiments) - logits; }
  // The sum over two neighbouring labels.
  static double odds(const float* logits, int first) { return std::exp(logits[first]) + std::exp(logits[first + 1]); }
};

Score evaluate(SentimentModel& model, const std::vector<Tree>& trees, const Vocabulary& vocabulary,
               const Options& options) {
  model.eval();
  Score score;
  batch_map(trees,
            [&](const Tree& tree) { score.count(tree, model(tree, numbers_of(tree, vocabulary)).to_vector<float>()); },
            {.immediate = options.batching == "off"});
  model.train();
  return score;
}

/// Returns a summary of the accuracy.
std::string train_epoch(SentimentModel& model, optim::Optimiser& optimiser, std::vector<const Tree*>& trees,
                        const Vocabulary& vocabulary, const Options& options, int epoch, std::mt19937_64& random) {
  nn::Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), std::ssize(trees), "trees");
  std::ranges::shuffle(trees, random);
  auto batch = static_cast<std::size_t>(options.batch);
  for (std::size_t start = 0; start < trees.size(); start += batch) {
    train::check_interruption();
    std::size_t stop = std::min(start + batch, trees.size());
    Tape tape;
    std::span<const Tree* const> some(trees.data() + start, stop - start);
    std::vector<Tensor> logits =
        batch_map(some, [&](const Tree* tree) { return model(*tree, numbers_of(*tree, vocabulary)); },
                  {.immediate = options.batching == "off"});
    std::vector<Tensor> labels;
    for (const Tree* tree : some) labels.push_back(labels_of(*tree));
    Tensor loss = cross_entropy(concat(logits), concat(labels), {.reduction = LossReduction::sum}) /
                  static_cast<double>(stop - start);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optimiser.step();
    optimiser.zero_grad();
    progress.advance(static_cast<std::int64_t>(stop - start), value);
  }
  progress.clear();
  return fmt::format("epoch {:2}/{}  training loss {:6.3f} a tree  {:5.1f} s", epoch, options.epochs, progress.loss(),
                     progress.seconds());
}

/// Offers the weights after each epoch, and the loaded ones before the first.
void train_model(SentimentModel& model, train::BestWeights& best, const std::vector<Tree>& trees,
                 const std::vector<Tree>& dev, const Vocabulary& vocabulary, const Options& options) {
  std::vector<Tensor> others = model.parameters();
  std::erase_if(others, [&](const Tensor& parameter) { return parameter.is(model.words.table); });
  optim::Adagrad adagrad(others, {.learning_rate = options.learning_rate, .weight_decay = options.weight_decay});
  adagrad.add_group({model.words.table}, {.learning_rate = options.embedding_rate});
  std::vector<const Tree*> order;
  for (const Tree& tree : trees) order.push_back(&tree);
  fmt::print("{} training trees, {} words, {} parameters\n", trees.size(), vocabulary.size(), model.parameter_count());
  std::fflush(stdout);
  std::mt19937_64 random(options.seed);
  auto offer = [&](const std::string& after) {
    Score reached = evaluate(model, dev, vocabulary, options);
    best.offer(reached.fine() + reached.binary());
    fmt::print("{}  dev {:.2f} % of five, {:.2f} % of two\n", after, reached.fine(), reached.binary());
    samples::flush_output();
  };
  if (!options.load.empty() && options.epochs > 0) offer("loaded weights");
  for (int epoch = 1; epoch <= options.epochs; ++epoch)
    offer(train_epoch(model, adagrad, order, vocabulary, options, epoch, random));
}

io::Metadata words_about(const Vocabulary& vocabulary, const Options& o) {
  std::string words;
  for (const std::string& word : vocabulary.words()) words += word + "\n";
  return {{"sample", "tree_lstm"},
          {"cell", o.cell},
          {"sizes", fmt::format("{} {}", o.embedding, o.hidden)},
          {"words", words}};
}

/// Reads the cell, sizes and words from a file's `words_about`.
Vocabulary loaded_vocabulary(const io::Contents& file, Options& o) {
  for (const char* key : {"cell", "sizes", "words"})
    if (!file.metadata.contains(key))
      throw std::runtime_error(fmt::format("'{}' was not saved by tree_lstm.", io::printable(o.load)));
  o.cell = file.metadata.at("cell");
  std::istringstream sizes(file.metadata.at("sizes")), words(file.metadata.at("words"));
  if (!(sizes >> o.embedding >> o.hidden) || o.embedding < 1 || o.hidden < 1)
    throw std::runtime_error(fmt::format("'{}' does not say the model's sizes.", io::printable(o.load)));
  Vocabulary vocabulary;
  for (std::string word; std::getline(words, word);) vocabulary.add(word);
  return vocabulary;
}

void print_table(SentimentModel& model, const Vocabulary& vocabulary, const Options& options,
                 const std::vector<std::pair<std::string, std::vector<Tree>>>& sets) {
  fmt::print("\n{:<8}{:>8}{:>16}{:>15}{:>15}\n", "", "trees", "root, of five", "root, of two", "all phrases");
  for (const auto& [name, trees] : sets) {
    Score score = evaluate(model, trees, vocabulary, options);
    fmt::print("{:<8}{:>8}{:>14.2f} %{:>13.2f} %{:>13.2f} %\n", name, score.roots, score.fine(), score.binary(),
               score.phrases());
  }
}

void run(Options options) {
  manual_seed(options.seed);
  bool trains = options.epochs > 0 || options.load.empty();
  std::vector<Tree> trees, dev, test;
  if (trains) trees = options.train.empty() ? Grammar(options.seed).trees(600) : read_trees(options.train);
  if (!options.test.empty()) test = read_trees(options.test);
  if (!options.dev.empty()) {
    dev = read_trees(options.dev);
  } else if (trains) {  // a tenth of the training set
    std::size_t held_back = (trees.size() + 9) / 10;
    if (trees.size() == held_back)
      throw std::runtime_error("there are too few trees to hold some back; name a --dev file.");
    dev.assign(trees.end() - static_cast<std::ptrdiff_t>(held_back), trees.end());
    trees.resize(trees.size() - held_back);
  }
  io::Contents file;
  Vocabulary vocabulary;
  if (!options.load.empty()) {
    file = io::load(options.load);
    vocabulary = loaded_vocabulary(file, options);
  } else {
    for (const Tree& tree : trees)
      for (const std::string& word : tree.words) vocabulary.add(word);
  }
  SentimentModel model(vocabulary.size(), options);
  // The sample's metadata shows that the file is not PyTorch's, even in files older than reel's format mark.
  if (!options.load.empty()) io::load_into(model, file, {.from_pytorch = false});
  io::Metadata about = words_about(vocabulary, options);
  if (!options.save.empty()) io::check_save(options.save, model, about);
  train::BestWeights best(model);
  samples::train_and_save(
      best, options.save, [&] { train_model(model, best, trees, dev, vocabulary, options); },
      [&] { io::save(options.save, model, about); });
  std::vector<std::pair<std::string, std::vector<Tree>>> sets;
  if (!dev.empty()) sets.emplace_back("dev", std::move(dev));
  if (!test.empty()) sets.emplace_back("test", std::move(test));
  if (!sets.empty()) print_table(model, vocabulary, options, sets);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line(
      "Learns the sentiment of every phrase of a sentence with an LSTM over the sentence's parse tree.", "tree_lstm");
  line.add_option("--train", options.train, "trees to learn from; without it, phrases of a small grammar");
  line.add_option("--dev", options.dev, "trees that choose the best epoch; without it, a tenth of those to learn from");
  line.add_option("--test", options.test, "trees to evaluate the result on");
  line.add_option("--cell", options.cell, "binary: a matrix for each child; child_sum: one for their sum",
                  samples::one_of({"binary", "child_sum"}));
  line.add_option("--hidden", options.hidden, "size of a node's vector", samples::at_least(1));
  line.add_option("--embedding", options.embedding, "size of a word's vector", samples::at_least(1));
  line.add_option("--batch", options.batch, "trees per step", samples::at_least(1));
  line.add_option("--epochs", options.epochs, "passes over the trees; 0 trains nothing", samples::at_least(0));
  line.add_option("--learning-rate", options.learning_rate, "Adagrad's", samples::at_least(0));
  line.add_option("--embedding-rate", options.embedding_rate, "Adagrad's for the words", samples::at_least(0));
  line.add_option("--weight-decay", options.weight_decay, "of all but the words", samples::at_least(0));
  line.add_option("--dropout", options.dropout, "of words' vectors and of nodes' where they are read out",
                  samples::between(0.0, 0.9));
  line.add_option("--batching", options.batching, "on: nodes of several trees at once; off: one tree after the other",
                  samples::one_of({"on", "off"}));
  line.add_option("--seed", options.seed, "of all random numbers", samples::at_least(0));
  line.add_option("--save", options.save, samples::save_help);
  line.add_option("--load", options.load,
                  "file of weights to start with, which an epoch has to beat to be saved; its cell and sizes hold");
  return line.run(argc, argv, [&] { run(options); });
}
