// Tags the words of tweets with their parts of speech, from their characters and from known words.
//
// Characters, the bytes of UTF-8, are learnt vectors. LSTM layers run over those of each word in both directions; the mean of
// their states, beside a learnt vector of the word itself, represents the word. LSTM layers run over the words of each tweet in
// both directions; a softmax over the tags ends it. Any number of words in a tweet, and of characters in a word, is Packed, so
// that nothing is computed for padding. In training some words are treated as unknown, so that their characters have to do.
// --load with more layers than the file has adds them, which trains the model in stages.
//
// Model: the Dracula tagger, github.com/Sentimentron/Dracula, which pads the sequences that are packed here.
// Data: CMU's Twitter part-of-speech data 0.3, oct27 (Gimpel et al., ACL 2011), a line a word: the word, a tabulator, its
//       tag, and an empty line behind each tweet; without --train, sentences of a small made-up language.
// Command: tools/run tweet_tagger --train tweets/oct27.train --dev tweets/oct27.dev
// Result: 88.2, 87.7, 87.7 % of oct27.dev (seeds 1, 2, 3; 35 s on one core, AVX-512); by each word's most frequent tag 69.4 %.

#include <sstream>

#include "made_up.h"
#include "padded_tagger.h"
#include "stepwise_tagger.h"
#include "training.h"

using namespace reel;

struct Sizes {
  std::int64_t characters = 64, words = 64, hidden = 128, character_layers = 1, word_layers = 1;
  double dropout = 0.5;
  /// The size of a word's vector.
  std::int64_t width() const { return (character_layers > 0 ? 2 : 1) * characters + words; }
};

struct Tagger : nn::Module {
  nn::Embedding characters, words;
  nn::ModuleList<nn::LSTM> over_characters{*this, "over_characters"}, over_words{*this, "over_words"};
  nn::Linear output;
  double dropped;

  Tagger(std::int64_t vocabulary, std::int64_t tags, const Sizes& o)
      : characters(*this, "characters", 256, o.characters),
        words(*this, "words", vocabulary, o.words, {.initialiser = nn::normal(0, 0.1)}),
        output(*this, "output", o.word_layers > 0 ? 2 * o.hidden : o.width(), tags),
        dropped(o.dropout) {
    if (o.character_layers > 0)
      over_characters.push_back(
          nn::LSTM(o.characters, o.characters, {.layers = o.character_layers, .bidirectional = true}));
    if (o.word_layers > 0)
      over_words.push_back(nn::LSTM(o.width(), o.hidden, {.layers = o.word_layers, .bidirectional = true}));
  }
  Tensor drop(const Tensor& x) const { return is_training() ? reel::dropout(x, {.probability = dropped}) : x; }

  /// Logits (words, tags) of words, each a sequence of bytes and an id, and the sizes of the tweets that they form.
  Tensor operator()(const nn::Packed& bytes, const Tensor& ids, const std::vector<std::int64_t>& tweet_sizes) const {
    nn::Packed letters = bytes.with(characters(bytes.elements));
    for (const nn::LSTM& lstm : over_characters) letters = lstm(letters).output;
    nn::Packed states{drop(concat({masked_mean(letters), words(ids)}, 1)), tweet_sizes};
    for (const nn::LSTM& lstm : over_words) states = lstm(states).output;
    return output(drop(states.elements));
  }
};

/// A tweet as the model sees it.
struct Tweet {
  std::vector<std::string> words;
  Tensor ids, tags;  ///< (words)
};

struct Batch {
  std::vector<Tweet> tweets;
  nn::Packed characters;                  ///< elements (characters), a sequence for each word
  std::vector<std::int64_t> tweet_sizes;  ///< the words of each tweet
  Tensor ids, tags;                       ///< (words)

  explicit Batch(std::vector<Tweet> some) : tweets(std::move(some)) {
    std::vector<std::int64_t> bytes;
    std::vector<Tensor> all_ids{zeros({0}, {.dtype = i64})}, all_tags = all_ids;  // there may be no tweets
    for (const Tweet& tweet : tweets) {
      tweet_sizes.push_back(std::ssize(tweet.words));
      all_ids.push_back(tweet.ids);
      all_tags.push_back(tweet.tags);
      for (const std::string& word : tweet.words) {
        for (unsigned char byte : word) bytes.push_back(byte);
        characters.lengths.push_back(std::ssize(word));
      }
    }
    characters.elements = tensor(bytes);
    ids = concat(all_ids);
    tags = concat(all_tags);
  }
};

/// A word as it is looked up: in lower case, each digit a 0, and all users and all addresses alike.
std::string normalised(std::string word) {
  if (word.starts_with('@') && word.size() > 1) return "@";
  if (word.starts_with("http") || word.starts_with("www.")) return "http";
  for (char& letter : word) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    if (letter >= '0' && letter <= '9') letter = '0';
  }
  return word;
}

struct Vocabularies {
  data::Vocabulary words, tags;
  explicit Vocabularies(const std::vector<data::Sentence>& tweets) {
    data::WordCounts of_words, of_tags;
    for (const data::Sentence& tweet : tweets) {
      of_words.add_all(tweet.columns[0] | std::views::transform(normalised));
      of_tags.add_all(tweet.columns[1]);
    }
    words = data::Vocabulary(of_words);
    // A tag that the training set lacks has the first id: such words are counted as wrong.
    tags = data::Vocabulary(of_tags, {.order = data::WordOrder::alphabet});
  }
};

struct Options : samples::RunOptions, Sizes {
  std::optional<std::int64_t> asked_character_layers, asked_word_layers;
  double unknown = 0.3;
  std::string batching = "packed";
  bool compare_padded = false;
  Options() { batch = 8, epochs = 30, learning_rate = 3e-3; }
};

/// Logits (words, tags) of a batch, as the options have it.
Tensor logits_of(const Tagger& model, const Batch& batch, const Options& options) {
  if (options.batching == "packed") return model(batch.characters, batch.ids, batch.tweet_sizes);
  return samples::stepwise_logits(model, batch.tweets, {.immediate = options.batching == "off"});
}

/// Tweets in batches; `unknown`: the probability that a word is treated as unknown.
auto batches_of(const std::vector<data::Sentence>& tweets, const Vocabularies& known, double unknown,
                data::LoaderOptions<Tweet> options) {
  auto see = [&known, unknown](const data::Sentence& tweet, Generator& generator) {
    const std::vector<std::string>& words = tweet.columns[0];
    Tensor kept = bernoulli(1 - unknown, {tweet.size()}, {.dtype = i64, .generator = &generator});
    return Tweet{words, kept * tensor(known.words.ids(words | std::views::transform(normalised))),
                 tensor(known.tags.ids(tweet.columns[1]))};
  };
  auto collate = [](std::vector<Tweet> some) { return Batch(std::move(some)); };
  return data::Loader(data::transformed(tweets, see), collate, std::move(options));
}

/// The percentage of words with the correct tag.
double accuracy(Tagger& model, const std::vector<data::Sentence>& tweets, const Vocabularies& known,
                const Options& options) {
  model.eval();
  double right = 0, words = 0;
  for (auto loader = batches_of(tweets, known, 0, {.batch_size = 64}); const Batch& batch : loader) {
    right += sum(to(argmax(logits_of(model, batch, options), 1) == batch.tags, f64)).item();
    words += static_cast<double>(batch.tags.numel());
  }
  model.train();
  return 100 * right / words;
}

void train_model(Tagger& model, const samples::Sets<data::Sentence>& sets, const Vocabularies& known,
                 const Options& options, const io::Metadata& about) {
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  auto loader = batches_of(sets.train, known, options.unknown, samples::training_batches<Tweet>(options, sets.train));
  samples::Replicas replicas(model, adam);
  std::int64_t steps = options.epochs * loader.batches().value_or(0);
  optim::Scheduler scheduler(adam, optim::cosine({.steps = std::max<std::int64_t>(steps, 1)}));
  auto step = [&](const Batch& batch) {
    Tape tape;
    Tensor loss = batch.tweets.empty() ? Tensor() : cross_entropy(logits_of(model, batch, options), batch.tags);
    double value = replicas.backward(tape, loss, batch.tags.numel(), loader.sources());
    optim::clip_grad_norm(adam.parameters(), 5);
    adam.step();
    adam.zero_grad();
    scheduler.step();
    return value;
  };
  std::string opening = fmt::format("{} tweets, {} parameters", sets.train.size(), model.parameter_count());
  samples::Run run{options, model, adam, "tweets", opening, about, {{"scheduler", scheduler}}};
  samples::train(run, loader, step, [&] {
    replicas.check();
    double reached = accuracy(model, sets.dev, known, options);
    return samples::Reached{reached, fmt::format("dev {:.2f} %", reached)};
  });
}

/// Copies the weights of a file into the model; with new layers those that fit, and the others start afresh.
void load_weights(Tagger& model, const io::Contents& file, bool grows) {
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& own : model.named_parameters()) shapes.emplace(own.name, own.tensor.shape());
  auto rename = [&](const std::string& name) { return grows && shapes[name] != file.at(name).shape() ? "" : name; };
  io::load_into(model, file, {.strict = !grows, .rename = rename});
}

void run(Options options) {
  manual_seed(options.seed);
  auto sets = samples::read_sets<data::Sentence>(
      options, "tweet", [](const std::string& path) { return data::read_conll(path, {.columns = 2}); },
      [&] { return samples::made_up_tweets(options.seed, 500); });
  io::Contents file = samples::load(options, "tweet_tagger");
  Vocabularies known(sets.train);
  if (!options.load.empty()) {
    known.words = data::Vocabulary::from_text(file.metadata["words"]);
    known.tags = data::Vocabulary::from_text(file.metadata["tags"]);
    std::istringstream sizes(file.metadata["sizes"]);
    sizes >> options.characters >> options.words >> options.hidden >> options.character_layers >> options.word_layers;
  }
  bool grows = false;
  for (auto [layers, asked] : {std::pair(&options.character_layers, options.asked_character_layers),
                               std::pair(&options.word_layers, options.asked_word_layers)}) {
    std::int64_t loaded = std::exchange(*layers, asked.value_or(*layers));
    if (!options.load.empty() && *layers < loaded)
      throw std::runtime_error(fmt::format("'{}' has {} layers, more than {}: layers can only be added.",
                                           io::printable(options.load), loaded, *layers));
    grows |= *layers > loaded;
  }
  Tagger model(known.words.size(), known.tags.size(), options);
  if (!options.load.empty()) load_weights(model, file, grows);
  train_model(model, sets, known, options,
              {{"sample", "tweet_tagger"},
               {"words", known.words.text()},
               {"tags", known.tags.text()},
               {"sizes", fmt::format("{} {} {} {} {}", options.characters, options.words, options.hidden,
                                     options.character_layers, options.word_layers)}});
  if (options.compare_padded && !sets.dev.empty())
    samples::compare_padded(model, *batches_of(sets.dev, known, 0, {.batch_size = 32}).begin());
  std::vector<std::vector<std::string>> rows{{"", "tweets", "words", "right"}};
  for (const auto& [name, tweets] : {std::pair("test", &sets.test), std::pair("dev", &sets.dev)}) {
    std::int64_t words = 0;
    for (const data::Sentence& tweet : *tweets) words += tweet.size();
    if (words > 0)
      rows.push_back({name, std::to_string(tweets->size()), std::to_string(words),
                      fmt::format("{:.2f} %", accuracy(model, *tweets, known, options))});
  }
  samples::print_results(rows);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line("Tags the words of tweets with their parts of speech.", "tweet_tagger");
  samples::add_training_options(line, options, "tweets");
  line.add_option("--characters", options.characters, "size of a character's vector and state", samples::at_least(1));
  line.add_option("--words", options.words, "size of a known word's own vector", samples::at_least(1));
  line.add_option("--unknown", options.unknown, "share of words that training hides", samples::between(0.0, 1.0));
  line.add_option("--hidden", options.hidden, "size of a word's state", samples::at_least(1));
  line.add_option("--character-layers", options.asked_character_layers,
                  "LSTMs over characters; by default 1, or --load's, to which more are added", samples::between(0, 8));
  line.add_option("--word-layers", options.asked_word_layers,
                  "LSTMs over words; by default 1, or --load's, to which more are added", samples::between(0, 8));
  line.add_option("--dropout", options.dropout, "of vectors and states of words", samples::between(0.0, 0.9));
  line.add_option("--batching", options.batching,
                  "packed: all words in one call of a layer; on: code for one word by batch_map; off: word by word",
                  samples::one_of({"packed", "on", "off"}));
  line.add_flag("--compare-padded", options.compare_padded, "also compute the loss with padding and masks");
  return line.run(argc, argv, [&] { run(options); });
}
