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
// Command: tools/run tree_lstm --train sst/train.txt --dev sst/dev.txt [--cell child_sum]
// Result: after 10 epochs, the best of them on the roots of the dev trees: 48.1 % of five sentiments, 86.8 % of two
//         (seed 1, AVX-512, 73 s of processor time; before a node's ops were fused, seeds 1 to 3 had 47.6, 46.9 and 48.0 %).

#include <reel/batching.h>

#include "made_up.h"
#include "training.h"

using namespace reel;

constexpr std::int64_t sentiments = 5, neutral = 2;

struct Sizes {
  std::string cell = "binary";
  std::int64_t embedding = 300, hidden = 150;
  double dropout = 0.5;
};

struct SentimentModel : nn::Module {
  nn::Embedding words;
  std::optional<nn::NaryTreeLSTM> binary;  // one of the two
  std::optional<nn::ChildSumTreeLSTM> child_sum;
  nn::Linear output;
  double dropped;

  SentimentModel(std::int64_t vocabulary, const Sizes& sizes)
      : words(*this, "words", vocabulary, sizes.embedding, {.row_gradient = true}),
        output(*this, "output", sizes.hidden, sentiments),
        dropped(sizes.dropout) {
    if (sizes.cell == "binary")
      binary.emplace(*this, "binary", sizes.embedding, sizes.hidden, 2);
    else
      child_sum.emplace(*this, "child_sum", sizes.embedding, sizes.hidden);
  }

  Tensor drop(const Tensor& x) const { return is_training() ? dropout(x, {.probability = dropped}) : x; }
  LSTMState cell(const Tensor& x, std::span<const LSTMState> children = {}) const {
    if (binary) return (*binary)(x, children);
    return (*child_sum)(x, children);  // NOLINT(bugprone-unchecked-optional-access): one of the two is there
  }

  /// Returns the state of a node, given those of the leaves; stores the vectors of the node and its descendants.
  LSTMState encode(const data::LabelledTree& tree, const data::LabelledTree::Node& node,
                   const std::vector<LSTMState>& leaves, std::vector<Tensor>& shown) const {
    LSTMState state;
    if (node.word >= 0) {
      state = leaves[static_cast<std::size_t>(node.word)];
    } else {
      std::vector<LSTMState> children;
      for (std::int64_t child : node.children)
        children.push_back(encode(tree, tree.nodes[static_cast<std::size_t>(child)], leaves, shown));
      state = cell(nn::no_input, children);
    }
    shown.push_back(state.h);
    return state;
  }
  /// Logits (nodes, 5), in the order of the nodes, from the ids of the words.
  Tensor operator()(const data::LabelledTree& tree, const std::vector<std::int64_t>& ids) const {
    LSTMState all = cell(drop(words(tensor(ids))));  // (words, H): all leaves at once
    std::vector<Tensor> h = split(all.h, 1), c = split(all.c, 1), shown;
    std::vector<LSTMState> leaves;
    for (std::size_t i = 0; i < h.size(); ++i) leaves.push_back({h[i], c[i]});
    encode(tree, tree.root(), leaves, shown);
    return output(drop(concat(shown)));
  }
};

/// A tree and the ids of its words.
struct Example {
  const data::LabelledTree* tree;
  std::vector<std::int64_t> ids;
};

/// Trees as examples, made when they are asked for.
auto examples_of(const std::vector<data::LabelledTree>& trees, const data::Vocabulary& vocabulary) {
  return data::transformed(trees, [&](const data::LabelledTree& tree) {
    return Example{&tree, vocabulary.ids(tree.words)};
  });
}

/// Logits (nodes, 5) of each tree of a batch.
std::vector<Tensor> logits_of(const SentimentModel& model, const std::vector<Example>& batch,
                              const BatchOptions& batching) {
  return batch_map(
      batch, [&](const Example& example) { return model(*example.tree, example.ids); }, batching);
}

/// The numbers of sentences and of phrases that are classified correctly.
struct Score {
  std::int64_t roots = 0, right_roots = 0, sided = 0, right_sides = 0, nodes = 0, right_nodes = 0;

  void count(const data::LabelledTree& tree, const std::vector<float>& logits) {
    for (std::size_t i = 0; i < tree.nodes.size(); ++i)
      right_nodes += best(&logits[i * sentiments]) == tree.nodes[i].value;
    nodes += std::ssize(tree.nodes);
    const float* root = &logits[(tree.nodes.size() - 1) * sentiments];
    ++roots;
    right_roots += best(root) == tree.root().value;
    if (tree.root().value == neutral) return;
    ++sided;
    right_sides += (odds(root, 3) > odds(root, 0)) == (tree.root().value > neutral);
  }
  double fine() const { return percent(right_roots, roots); }
  double binary() const { return percent(right_sides, sided); }
  double phrases() const { return percent(right_nodes, nodes); }

 private:
  static double percent(std::int64_t right, std::int64_t all) {
    return 100.0 * static_cast<double>(right) / static_cast<double>(std::max<std::int64_t>(all, 1));
  }
  static std::int64_t best(const float* logits) { return std::max_element(logits, logits + sentiments) - logits; }
  // The sum over two neighbouring labels.
  static double odds(const float* logits, int first) { return std::exp(logits[first]) + std::exp(logits[first + 1]); }
};

Score evaluate(SentimentModel& model, const std::vector<data::LabelledTree>& trees, const data::Vocabulary& vocabulary,
               const BatchOptions& batching) {
  model.eval();
  Score score;
  data::Loader batches(examples_of(trees, vocabulary), {.batch_size = 256});
  for (const auto& batch : batches) {
    std::vector<Tensor> logits = logits_of(model, batch, batching);
    for (std::size_t i = 0; i < batch.size(); ++i) score.count(*batch[i].tree, logits[i].to_vector<float>());
  }
  model.train();
  return score;
}

struct Options : samples::RunOptions, Sizes {
  double embedding_rate = 0.1, weight_decay = 1e-4;
  std::string batching = "on";

  BatchOptions of_batches() const { return {.immediate = batching == "off"}; }
};

void train_model(SentimentModel& model, const samples::Sets<data::LabelledTree>& sets,
                 const data::Vocabulary& vocabulary, const Options& options, const io::Metadata& about) {
  std::vector<Tensor> others = model.parameters();
  std::erase_if(others, [&](const Tensor& parameter) { return parameter.is(model.words.table); });
  optim::Adagrad adagrad(others, {.learning_rate = options.learning_rate, .weight_decay = options.weight_decay});
  adagrad.add_group({model.words.table}, {.learning_rate = options.embedding_rate});
  data::Loader loader(examples_of(sets.train, vocabulary), samples::training_batches<Example>(options, sets.train));
  samples::Replicas replicas(model, adagrad, {model.words.table});
  auto step = [&](const std::vector<Example>& batch) {
    Tape tape;
    std::vector<Tensor> logits = logits_of(model, batch, options.of_batches());
    std::vector<std::int64_t> labels;
    for (const Example& example : batch)
      for (const auto& node : example.tree->nodes) labels.push_back(node.value);
    auto count = static_cast<double>(batch.size());
    Tensor loss;
    if (!batch.empty()) loss = cross_entropy(concat(logits), tensor(labels), {.reduction = LossReduction::sum}) / count;
    double value = replicas.backward(tape, loss, count, loader.sources());
    adagrad.step();
    adagrad.zero_grad();
    return value;
  };
  std::string opening = fmt::format("{} training trees, {} words, {} parameters", sets.train.size(), vocabulary.size(),
                                    model.parameter_count());
  samples::train({options, model, adagrad, "trees", opening, about}, loader, step, [&] {
    replicas.check();
    Score score = evaluate(model, sets.dev, vocabulary, options.of_batches());
    return samples::Reached{score.fine() + score.binary(),
                            fmt::format("dev {:.2f} % of five, {:.2f} % of two", score.fine(), score.binary())};
  });
}

void run(Options options) {
  manual_seed(options.seed);
  // A leaf has no use for the weights of its forget gate: they decay until they are denormal, and a product of denormal
  // numbers takes some processors many times as long.
  set_flush_denormals(true);
  auto read = [](const std::string& path) {
    return data::read_trees(path, {.labels = data::TreeOptions::Labels{0, 4}, .most_children = 2, .lower_case = true});
  };
  auto make_up = [&] { return samples::made_up_trees(options.seed, 600); };
  auto sets = samples::read_sets<data::LabelledTree>(options, "tree", read, make_up);

  io::Contents file = samples::load(options, "tree_lstm");
  data::WordCounts counts;
  for (const data::LabelledTree& tree : sets.train) counts.add_all(tree.words);
  data::Vocabulary vocabulary(counts);
  if (!options.load.empty()) {
    vocabulary = data::Vocabulary::from_text(file.metadata["words"]);
    options.cell = file.metadata["cell"];
    options.embedding = std::stoll(file.metadata["embedding"]);
    options.hidden = std::stoll(file.metadata["hidden"]);
  }
  SentimentModel model(vocabulary.size(), options);
  if (!options.load.empty()) io::load_into(model, file);
  train_model(model, sets, vocabulary, options,
              {{"sample", "tree_lstm"},
               {"words", vocabulary.text()},
               {"cell", options.cell},
               {"embedding", std::to_string(options.embedding)},
               {"hidden", std::to_string(options.hidden)}});

  std::vector<std::vector<std::string>> rows{{"", "trees", "root, of five", "root, of two", "all phrases"}};
  auto per_cent = [](double share) { return fmt::format("{:.2f} %", share); };
  for (const auto& [name, trees] : {std::pair("test", &sets.test), std::pair("dev", &sets.dev)}) {
    if (trees->empty()) continue;
    Score score = evaluate(model, *trees, vocabulary, options.of_batches());
    rows.push_back({name, std::to_string(score.roots), per_cent(score.fine()), per_cent(score.binary()),
                    per_cent(score.phrases())});
  }
  samples::print_results(rows);
}

int main(int argc, char** argv) {
  Options options;
  options.batch = 25;
  options.learning_rate = 0.05;
  samples::CommandLine line(
      "Learns the sentiment of every phrase of a sentence with an LSTM over the sentence's parse tree.", "tree_lstm");
  samples::add_training_options(line, options, "trees");
  line.add_option("--cell", options.cell, "binary: a matrix for each child; child_sum: one for their sum",
                  samples::one_of({"binary", "child_sum"}));
  line.add_option("--hidden", options.hidden, "size of a node's vector", samples::at_least(1));
  line.add_option("--embedding", options.embedding, "size of a word's vector", samples::at_least(1));
  line.add_option("--embedding-rate", options.embedding_rate, "Adagrad's for the words", samples::at_least(0));
  line.add_option("--weight-decay", options.weight_decay, "of all but the words", samples::at_least(0));
  line.add_option("--dropout", options.dropout, "of words' vectors and of nodes' where they are read out",
                  samples::between(0.0, 0.9));
  line.add_option("--batching", options.batching, "on: nodes of several trees at once; off: one tree after the other",
                  samples::one_of({"on", "off"}));
  return line.run(argc, argv, [&] { run(options); });
}
