// Learns the sentiment of sentences with convolutions over their words and a maximum over time.
//
// The words of a minibatch's sentences are concatenated without padding (nn::Packed); a convolution sees each
// sentence by itself. A filter of width 3 fires where three words match it, and its largest value in the sentence is a
// feature. All labelled phrases of the training trees are examples, sentences and single words among them.
//
// Paper: Kim, Convolutional neural networks for sentence classification (EMNLP 2014), CNN-rand.
// Data: nlp.stanford.edu/sentiment, trainDevTestTrees_PTB.zip; without --train, phrases of a small made-up grammar.
// Command: tools/run text_cnn --train sst/train.txt --dev sst/dev.txt
// Result: 43.8 % of five sentiments on the dev sentences (seeds 1 to 3: 43.8, 44.3, 42.6, after the second of three
//         epochs, which --save keeps; 53 to 59 processor seconds, AVX-512); the majority is 26 %.

#include "phrases.h"

using namespace reel;

struct Sizes {
  std::int64_t embedding = 100, filters = 100;
  double dropout = 0.5;
};

struct SentenceClassifier : nn::Module {
  nn::Embedding words;
  nn::ModuleList<nn::Conv1d> convolutions{*this, "convolutions"};
  nn::Linear output;
  double dropped;

  SentenceClassifier(std::int64_t vocabulary, const Sizes& sizes)
      : words(*this, "words", vocabulary, sizes.embedding,
              {.row_gradient = true, .initialiser = nn::uniform(-0.25, 0.25)}),
        output(*this, "output", 3 * sizes.filters, samples::sentiments),
        dropped(sizes.dropout) {
    for (std::int64_t width : {3, 4, 5})
      convolutions.push_back(nn::Conv1d(sizes.embedding, sizes.filters, width, {.padding = Padding::same}));
  }

  Tensor drop(const Tensor& x) const { return is_training() ? dropout(x, {.probability = dropped}) : x; }
  /// Logits (B, 5) of packed sentences of word ids.
  Tensor operator()(const nn::Packed& sentences) const {
    nn::Packed x = sentences.with(words(sentences.elements));  // (N, embedding)
    std::vector<Tensor> features;                              // each (B, filters)
    for (const nn::Conv1d& convolution : convolutions) features.push_back(relu(nn::masked_max(convolution(x))));
    return output(drop(concat(features, 1)));
  }
};

using Phrases = std::vector<samples::Phrase>;

/// The words of a batch, and its labels (B).
std::pair<nn::Packed, Tensor> operands_of(const Phrases& batch) {
  std::vector<std::int64_t> words, lengths, labels;
  for (const samples::Phrase& phrase : batch) {
    words.insert(words.end(), phrase.words.begin(), phrase.words.end());
    lengths.push_back(std::ssize(phrase.words));
    labels.push_back(phrase.label);
  }
  return {{tensor(words), lengths}, tensor(labels)};
}

train::ConfusionMatrix evaluate(SentenceClassifier& model, const Phrases& phrases) {
  model.eval();
  train::ConfusionMatrix matrix(samples::sentiments);
  data::Loader batches(phrases, {.batch_size = 256});
  for (const Phrases& batch : batches) {
    auto [sentences, labels] = operands_of(batch);
    matrix.add(model(sentences), labels);
  }
  model.train();
  return matrix;
}

struct Options : samples::RunOptions, Sizes {
  std::string phrases = "all";
  double weight_decay = 0;
};

void train_model(SentenceClassifier& model, const Phrases& training, const Phrases& dev, const Options& options,
                 const io::Metadata& about) {
  optim::Adam adam({model.words.table}, {.learning_rate = options.learning_rate});
  std::vector<Tensor> others = model.parameters();
  std::erase_if(others, [&](const Tensor& parameter) { return parameter.is(model.words.table); });
  adam.add_group(others, {.learning_rate = options.learning_rate, .weight_decay = options.weight_decay});
  data::Loader loader(training, {.batch_size = options.batch,
                                 .shuffle = true,
                                 .seed = options.seed,
                                 .length = [](const samples::Phrase& phrase) { return std::ssize(phrase.words); }});
  auto step = [&](const Phrases& batch) {
    auto [sentences, labels] = operands_of(batch);
    Tape tape;
    Tensor loss = cross_entropy(model(sentences), labels);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    adam.step();
    adam.zero_grad();
    return value;
  };
  std::string opening = fmt::format("{} training phrases, {} words, {} parameters", training.size(),
                                    model.words.table.size(0), model.parameter_count());
  samples::train({options, model, adam, "phrases", opening, about}, loader, step, [&] {
    double right = 100 * evaluate(model, dev).accuracy();
    return samples::Reached{right, fmt::format("dev {:.2f} % of five", right)};
  });
}

void run(Options options) {
  manual_seed(options.seed);
  auto sets = samples::read_sentiment_trees(options);
  io::Contents file = samples::load(options, "text_cnn");
  data::Vocabulary vocabulary = samples::vocabulary_of(sets.train, file);
  if (!options.load.empty()) {
    options.embedding = std::stoll(file.metadata["embedding"]);
    options.filters = std::stoll(file.metadata["filters"]);
  }
  SentenceClassifier model(vocabulary.size(), options);
  if (!options.load.empty()) io::load_into(model, file);
  train_model(model, samples::phrases_of(sets.train, vocabulary, options.phrases == "all"),
              samples::phrases_of(sets.dev, vocabulary, false), options,
              {{"sample", "text_cnn"},
               {"words", vocabulary.text()},
               {"embedding", std::to_string(options.embedding)},
               {"filters", std::to_string(options.filters)}});

  samples::print_sentiment_results(sets, "sentences", [&](const std::vector<data::LabelledTree>& trees) {
    return evaluate(model, samples::phrases_of(trees, vocabulary, false));
  });
}

int main(int argc, char** argv) {
  Options options;
  options.batch = 64;
  options.epochs = 3;
  samples::CommandLine line("Learns the sentiment of sentences with convolutions over words and a maximum over time.",
                            "text_cnn");
  samples::add_training_options(line, options, "trees");
  line.add_option("--phrases", options.phrases,
                  "all: learns from every labelled phrase; sentences: from sentences alone",
                  samples::one_of({"all", "sentences"}));
  line.add_option("--embedding", options.embedding, "size of a word's vector", samples::at_least(1));
  line.add_option("--filters", options.filters, "filters of each width", samples::at_least(1));
  line.add_option("--dropout", options.dropout, "of the features", samples::between(0.0, 0.9));
  line.add_option("--weight-decay", options.weight_decay, "of all but the words", samples::at_least(0));
  return line.run(argc, argv, [&] { run(options); });
}
