// Tags the words of tweets with their parts of speech, from nothing but their characters.
//
// Each character is a learnt vector. Zero or more LSTM layers run over the characters of each word, whose mean is the
// word's vector; zero or more LSTM layers run over the words of each tweet in both directions; a softmax over the tags
// ends it. Tweets have any number of words and words any number of characters: both are Packed, so that nothing is
// computed for padding. Characters are the bytes of UTF-8, so that none is unknown.
// The model is written a second time, for one tweet and one word: --batching on runs it with batch_map, in which each tweet
// is an example, and each word an example within it.
//
// Model: the Dracula tagger, github.com/Sentimentron/Dracula, which pads the sequences that are packed here.
// Data: CMU's Twitter part-of-speech data 0.3, oct27 (Gimpel et al., ACL 2011), a line a word: the word, a tabulator, its
//       tag, and an empty line behind each tweet; without --train, sentences of a small made-up language.
// Command: tools/run tweet_tagger --train tweets/oct27.train --dev tweets/oct27.dev
// Result: 83.7 % of the words of oct27.dev after 20 epochs (seed 1), of whose time 0.5 % is spent on waiting for batches.
//         On another machine an epoch takes 0.5 s, with --batching on 1.0 s, and off 1.3 s.

#include <reel/batching.h>

#include "made_up.h"
#include "padded_tagger.h"
#include "training.h"

using namespace reel;

struct Sizes {
  std::int64_t characters = 64, hidden = 128, character_layers = 1, word_layers = 1;
  double dropout = 0.3;
};

/// The states (T, directions * H) that layers show over one sequence x (T, I), step by step.
Tensor run_steps(const nn::LSTM& lstm, std::size_t directions, Tensor x);

struct Tagger : nn::Module {
  nn::Embedding characters;
  nn::ModuleList<nn::LSTM> over_characters{*this, "over_characters"}, over_words{*this, "over_words"};
  nn::Linear output;
  double dropped;

  Tagger(std::int64_t tags, const Sizes& o)
      : characters(*this, "characters", 256, o.characters),
        output(*this, "output",
               o.word_layers > 0        ? 2 * o.hidden
               : o.character_layers > 0 ? o.hidden
                                        : o.characters,
               tags),
        dropped(o.dropout) {
    if (o.character_layers > 0)
      over_characters.push_back(nn::LSTM(o.characters, o.hidden, {.layers = o.character_layers}));
    if (o.word_layers > 0)
      over_words.push_back(nn::LSTM(o.character_layers > 0 ? o.hidden : o.characters, o.hidden,
                                    {.layers = o.word_layers, .bidirectional = true}));
  }

  Tensor drop(const Tensor& x) const { return is_training() ? reel::dropout(x, {.probability = dropped}) : x; }

  /// Logits (words, tags) of words, each a sequence of bytes, and the sizes of the tweets that they form.
  Tensor operator()(const nn::Packed& bytes, const std::vector<std::int64_t>& tweet_sizes) const {
    nn::Packed letters = bytes.with(characters(bytes.elements));
    for (const nn::LSTM& lstm : over_characters) letters = lstm(letters).output;
    nn::Packed words{drop(masked_mean(letters)), tweet_sizes};
    for (const nn::LSTM& lstm : over_words) words = lstm(words).output;
    return output(drop(words.elements));
  }

  /// The vector (1, D) of a word.
  Tensor operator()(const std::string& word) const {
    std::vector<std::int64_t> bytes;
    for (unsigned char byte : word) bytes.push_back(byte);
    Tensor letters = characters(tensor(bytes));
    for (const nn::LSTM& lstm : over_characters) letters = run_steps(lstm, 1, letters);
    return drop(mean(letters, {0}, {.keepdims = true}));
  }
  /// Logits (words, tags) of a tweet, whose words are examples of a batch_map.
  Tensor operator()(const data::Sentence& tweet, const BatchOptions& options) const {
    Tensor words = concat(batch_map(tweet.columns[0], *this, options));
    for (const nn::LSTM& lstm : over_words) words = run_steps(lstm, 2, words);
    return output(drop(words));
  }
};

Tensor run_steps(const nn::LSTM& lstm, std::size_t directions, Tensor x) {
  auto run_net = [&](const nn::LSTMCell& cell, bool reversed) {
    std::vector<Tensor> steps = split(x, 1);
    if (reversed) std::ranges::reverse(steps);
    nn::LSTMState state = cell.initial_state(1);
    for (Tensor& step : steps) {
      state = cell(step, state);
      step = state.h;
    }
    if (reversed) std::ranges::reverse(steps);
    return concat(steps);
  };
  for (std::size_t net = 0; net < lstm.nets.size(); net += directions) {
    if (directions == 1) {
      x = run_net(lstm.nets[net], false);
    } else {
      auto [forwards, backwards] =
          both([&] { return run_net(lstm.nets[net], false); }, [&] { return run_net(lstm.nets[net + 1], true); });
      x = concat({forwards, backwards}, 1);
    }
  }
  return x;
}

/// A batch of tweets as ids.
struct Batch {
  std::vector<data::Sentence> tweets;     ///< words and tags
  nn::Packed characters;                  ///< elements (characters), a sequence for each word
  std::vector<std::int64_t> tweet_sizes;  ///< the words of each tweet
  Tensor tags;                            ///< (words)

  Batch(std::vector<data::Sentence> read, const data::Vocabulary& known) : tweets(std::move(read)) {
    std::vector<std::int64_t> bytes, ids;
    for (const data::Sentence& tweet : tweets) {
      tweet_sizes.push_back(tweet.size());
      for (const std::string& word : tweet.columns[0]) {
        for (unsigned char byte : word) bytes.push_back(byte);
        characters.lengths.push_back(std::ssize(word));
      }
      for (const std::string& tag : tweet.columns[1]) ids.push_back(known[tag]);
    }
    characters.elements = tensor(bytes);
    tags = tensor(ids);
  }
};

struct Options : samples::RunOptions, Sizes {
  std::string batching = "packed";
  bool compare_padded = false;
};

/// Logits (words, tags) of a batch, as the options have it.
Tensor logits_of(const Tagger& model, const Batch& batch, const Options& options) {
  if (options.batching == "packed") return model(batch.characters, batch.tweet_sizes);
  BatchOptions batching{.immediate = options.batching == "off"};
  return concat(batch_map(
      batch.tweets, [&](const data::Sentence& tweet) { return model(tweet, batching); }, batching));
}

/// Tweets in batches.
auto batches_of(const std::vector<data::Sentence>& tweets, const data::Vocabulary& tags,
                data::LoaderOptions<data::Sentence> options) {
  return data::Loader(
      tweets, [&tags](std::vector<data::Sentence> some) { return Batch(std::move(some), tags); }, std::move(options));
}

/// The percentage of words with the correct tag.
double accuracy(Tagger& model, const std::vector<data::Sentence>& tweets, const data::Vocabulary& tags,
                const Options& options) {
  model.eval();
  double right = 0, words = 0;
  for (auto loader = batches_of(tweets, tags, {.batch_size = 64}); const Batch& batch : loader) {
    right += sum(to(argmax(logits_of(model, batch, options), 1) == batch.tags, f64)).item();
    words += static_cast<double>(batch.tags.numel());
  }
  model.train();
  return 100 * right / words;
}

void train_model(Tagger& model, const samples::Sets<data::Sentence>& sets, const data::Vocabulary& tags,
                 const Options& options, const io::Metadata& about) {
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  auto loader = batches_of(sets.train, tags, {.batch_size = options.batch, .shuffle = true, .seed = options.seed});
  auto step = [&](const Batch& batch) {
    Tape tape;
    Tensor loss = cross_entropy(logits_of(model, batch, options), batch.tags);
    double value = loss.item();
    train::check_loss(value, loader.sources());
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), 5);
    adam.step();
    adam.zero_grad();
    return value;
  };
  std::string opening =
      fmt::format("{} tweets, {} tags, {} parameters", sets.train.size(), tags.size(), model.parameter_count());
  samples::train({options, model, adam, "tweets", opening, about}, loader, step, [&] {
    double reached = accuracy(model, sets.dev, tags, options);
    return samples::Reached{reached, fmt::format("dev {:.2f} %", reached)};
  });
}

void run(Options options) {
  manual_seed(options.seed);
  auto sets = samples::read_sets<data::Sentence>(
      options, "tweet", [](const std::string& path) { return data::read_conll(path, {.columns = 2}); },
      [&] { return samples::made_up_tweets(options.seed, 500); });
  io::Contents file = samples::load(options, "tweet_tagger");
  data::WordCounts counts;
  for (const data::Sentence& tweet : sets.train) counts.add_all(tweet.columns[1]);
  // A tag that the training set lacks has the first id: such words are counted as wrong.
  data::Vocabulary tags(counts, {.order = data::WordOrder::alphabet});
  if (!options.load.empty()) {
    tags = data::Vocabulary::from_text(file.metadata["tags"]);
    std::istringstream sizes(file.metadata["sizes"]);
    sizes >> options.characters >> options.hidden >> options.character_layers >> options.word_layers;
  }
  Tagger model(tags.size(), options);
  if (!options.load.empty()) io::load_into(model, file);
  train_model(model, sets, tags, options,
              {{"sample", "tweet_tagger"},
               {"tags", tags.text()},
               {"sizes", fmt::format("{} {} {} {}", options.characters, options.hidden, options.character_layers,
                                     options.word_layers)}});
  if (options.compare_padded && !sets.dev.empty()) {
    auto loader = batches_of(sets.dev, tags, {.batch_size = 32});
    const Batch& batch = *loader.begin();
    samples::compare_padded(model, batch.characters, batch.tweet_sizes, batch.tags);
  }
  fmt::print("\n{:<8}{:>8}{:>8}{:>12}\n", "", "tweets", "words", "right");
  for (const auto& [name, tweets] : {std::pair("dev", &sets.dev), std::pair("test", &sets.test)}) {
    std::int64_t words = 0;
    for (const data::Sentence& tweet : *tweets) words += tweet.size();
    if (words > 0)
      fmt::print("{:<8}{:>8}{:>8}{:>10.2f} %\n", name, tweets->size(), words, accuracy(model, *tweets, tags, options));
  }
}

int main(int argc, char** argv) {
  Options options;
  options.batch = 16;
  options.epochs = 20;
  options.learning_rate = 3e-3;
  samples::CommandLine line("Tags the words of tweets with their parts of speech, from nothing but their characters.",
                            "tweet_tagger");
  samples::add_training_options(line, options, "tweets");
  line.add_option("--characters", options.characters, "size of a character's vector", samples::at_least(1));
  line.add_option("--hidden", options.hidden, "size of an LSTM's state", samples::at_least(1));
  line.add_option("--character-layers", options.character_layers, "LSTM layers over characters",
                  samples::between(0, 8));
  line.add_option("--word-layers", options.word_layers, "LSTM layers over words", samples::between(0, 8));
  line.add_option("--dropout", options.dropout, "of words' vectors and of what the tags are read from",
                  samples::between(0.0, 0.9));
  line.add_option("--batching", options.batching,
                  "packed: the words of all tweets in one call of a layer; on: code for one word, many of which run at "
                  "once; off: that code, one word after the other",
                  samples::one_of({"packed", "on", "off"}));
  line.add_flag("--compare-padded", options.compare_padded, "also compute the loss with padding and masks");
  return line.run(argc, argv, [&] { run(options); });
}
