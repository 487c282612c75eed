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
// Command: tools/run tweet_tagger --train oct27.train --dev oct27.dev
// Result: 83.3 % of the words of oct27.dev after 20 epochs of 0.8 s; 75.5 % and 0.3 s with --character-layers 0.
//         On another machine an epoch takes 0.5 s, with --batching on 1.0 s, and off 1.3 s; both of these end at 83.8 %.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <reel/batching.h>
#include <reel/reel.h>

#include "command_line.h"

using namespace reel;

struct Options {
  std::string train, dev, test, save, load;
  std::int64_t characters = 64;
  std::int64_t hidden = 128;
  std::int64_t character_layers = 1;
  std::int64_t word_layers = 1;
  std::int64_t batch = 16;
  int epochs = 20;
  double learning_rate = 3e-3;
  double dropout = 0.3;
  std::string batching = "packed";
  std::uint64_t seed = 1;
  bool compare_padded = false;
};

struct Tweet {
  std::vector<std::string> words, tags;
};

std::vector<Tweet> read_tweets(const std::string& path) {
  std::vector<std::string> lines = io::read_lines(path);
  std::vector<Tweet> tweets(1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.empty()) {
      if (!tweets.back().words.empty()) tweets.emplace_back();
      continue;
    }
    std::size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string::npos || tab + 1 == line.size() || line.find('\t', tab + 1) != std::string::npos)
      throw std::runtime_error(fmt::format("{}:{}: a line is a word, a tabulator and a tag, not '{}'.",
                                           io::printable(path), i + 1, io::printable(line)));
    tweets.back().words.push_back(line.substr(0, tab));
    tweets.back().tags.push_back(line.substr(tab + 1));
  }
  if (tweets.back().words.empty()) tweets.pop_back();
  if (tweets.empty()) throw std::runtime_error(fmt::format("there is no tweet in '{}'.", io::printable(path)));
  return tweets;
}

/// Sentences of made-up words, whose tags show in their endings, and for one ending in the word before.
std::vector<Tweet> made_up_tweets(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  auto stem = [&] {
    std::string word;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      word += "bdfklmnprst"[random() % 11];
      word += "aeiou"[random() % 5];
    }
    return word;
  };
  std::vector<Tweet> tweets;
  for (int i = 0; i < count; ++i) {
    Tweet tweet;
    auto add = [&](const std::string& word, const char* tag) {
      tweet.words.push_back(word);
      tweet.tags.emplace_back(tag);
    };
    for (std::size_t clause = 0; clause < 1 + random() % 4; ++clause) {
      add(random() % 2 ? "the" : "a", "D");
      if (random() % 2) add(stem() + "ish", "A");
      add(stem() + "er", "N");
      add(stem() + "er", "V");  // a noun behind a determiner, a verb behind a noun
      if (random() % 3 == 0) add("@" + stem(), "@");
    }
    add(random() % 2 ? "." : "!", ",");
    tweets.push_back(std::move(tweet));
  }
  return tweets;
}

/// The tags that occur, and their ids.
struct Tags {
  std::vector<std::string> names;

  explicit Tags(std::vector<std::string> names) : names(std::move(names)) {}
  explicit Tags(const std::vector<Tweet>& tweets) {
    for (const Tweet& tweet : tweets) names.insert(names.end(), tweet.tags.begin(), tweet.tags.end());
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  std::int64_t size() const { return std::ssize(names); }
  /// The id of a tag; −1 if it does not occur.
  std::int64_t operator[](const std::string& name) const {
    auto found = std::ranges::lower_bound(names, name);
    return found != names.end() && *found == name ? found - names.begin() : -1;
  }
};

/// A batch of tweets as ids.
struct Batch {
  nn::Packed characters;                  ///< elements (characters), a sequence for each word
  std::vector<std::int64_t> tweet_sizes;  ///< the words of each tweet
  Tensor tags;                            ///< (words)

  Batch(std::span<const Tweet> tweets, const Tags& known) {
    std::vector<std::int64_t> bytes, numbers;
    for (const Tweet& tweet : tweets) {
      tweet_sizes.push_back(std::ssize(tweet.words));
      for (const std::string& word : tweet.words) {
        for (unsigned char byte : word) bytes.push_back(byte);
        characters.lengths.push_back(std::ssize(word));
      }
      for (const std::string& tag : tweet.tags) numbers.push_back(known[tag]);
    }
    characters.elements = tensor(bytes);
    tags = tensor(numbers);
  }
};

/// The states (T, directions * H) that layers show over one sequence x (T, I), step by step.
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

struct Tagger : nn::Module {
  nn::Embedding characters;
  nn::ModuleList<nn::LSTM> over_characters{*this, "over_characters"}, over_words{*this, "over_words"};
  nn::Linear output;
  double dropped;

  Tagger(std::int64_t tags, const Options& o)
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

  /// Logits (words, tags).
  Tensor operator()(const Batch& batch) const {
    nn::Packed letters = batch.characters.with(characters(batch.characters.elements));
    for (const nn::LSTM& lstm : over_characters) letters = lstm(letters).output;
    nn::Packed words{drop(masked_mean(letters)), batch.tweet_sizes};
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
  Tensor operator()(const Tweet& tweet, const BatchOptions& options) const {
    Tensor words = concat(batch_map(tweet.words, *this, options));
    for (const nn::LSTM& lstm : over_words) words = run_steps(lstm, 2, words);
    return output(drop(words));
  }
};

/// Logits (words, tags) of several tweets, in their order.
Tensor logits_of(const Tagger& model, std::span<const Tweet> tweets, const Batch& batch, const Options& options) {
  if (options.batching == "packed") return model(batch);
  BatchOptions of_batches{.immediate = options.batching == "off"};
  return concat(batch_map(
      tweets, [&](const Tweet& tweet) { return model(tweet, of_batches); }, of_batches));
}

/// Computes these logits with padding, for comparison: every word is padded to the characters of the longest word and
/// every tweet to the words of the longest tweet of the batch; masks exclude the padding.
class PaddedTagger {
 public:
  explicit PaddedTagger(const Tagger& model) : model_(model) {}

  Tensor operator()(const Batch& batch) const {
    Tensor mask = batch.characters.mask();                          // (longest word, words)
    Tensor letters = model_.characters(batch.characters.padded());  // (longest word, words, D)
    for (const nn::LSTM& lstm : model_.over_characters) letters = run(lstm, 1, letters, mask);
    Tensor weights = unsqueeze(to(mask, f32), 2);
    Tensor means = sum(letters * weights, {0}) / sum(weights, {0});  // (words, D)
    nn::Packed words{means, batch.tweet_sizes};
    Tensor word_mask = words.mask(), padded = words.padded();  // (longest tweet, tweets), (…, D)
    for (const nn::LSTM& lstm : model_.over_words) padded = run(lstm, 2, padded, word_mask);
    return model_.output(nn::pack(padded, tensor(batch.tweet_sizes)).elements);
  }

 private:
  // A step does not change the state where the mask is false.
  static Tensor run(const nn::LSTM& lstm, std::size_t directions, Tensor x, const Tensor& mask) {
    for (std::size_t net = 0; net < lstm.nets.size(); net += directions) {
      std::vector<Tensor> shown;
      for (std::size_t direction = 0; direction < directions; ++direction)
        shown.push_back(run_net(lstm.nets[net + direction], x, mask, direction == 1));
      x = concat(shown, 2);
    }
    return x;
  }
  static Tensor run_net(const nn::LSTMCell& cell, const Tensor& x, const Tensor& mask, bool backwards) {
    nn::LSTMState state = cell.initial_state(x.size(1));
    std::vector<Tensor> shown(static_cast<std::size_t>(x.size(0)));
    for (std::int64_t step = 0; step < x.size(0); ++step) {
      std::int64_t t = backwards ? x.size(0) - 1 - step : step;
      nn::LSTMState next = cell(x(t), state);
      Tensor there = unsqueeze(mask(t), 1);
      state = {where(there, next.h, state.h), where(there, next.c, state.c)};
      shown[static_cast<std::size_t>(t)] = state.h;
    }
    return stack(shown);
  }

  const Tagger& model_;
};

/// The percentage of words with the correct tag.
double accuracy(Tagger& model, std::span<const Tweet> tweets, const Tags& tags, const Options& options) {
  model.eval();
  constexpr std::size_t at_once = 64;
  double right = 0, words = 0;
  for (std::size_t start = 0; start < tweets.size(); start += at_once) {
    std::span<const Tweet> some = tweets.subspan(start, std::min(at_once, tweets.size() - start));
    Batch batch(some, tags);
    right += sum(to(argmax(logits_of(model, some, batch, options), 1) == batch.tags, f64)).item();
    words += static_cast<double>(batch.tags.numel());
  }
  model.train();
  return 100 * right / words;
}

/// Returns a summary of the accuracy.
std::string train_epoch(Tagger& model, optim::Adam& adam, std::vector<Tweet>& tweets, const Tags& tags,
                        const Options& options, int epoch, std::mt19937_64& random) {
  nn::Progress progress(fmt::format("epoch {}/{}", epoch, options.epochs), std::ssize(tweets), "tweets");
  std::ranges::shuffle(tweets, random);
  std::span<const Tweet> all = tweets;
  auto size = static_cast<std::size_t>(options.batch);
  for (std::size_t start = 0; start < all.size(); start += size) {
    train::check_interruption();
    std::span<const Tweet> some = all.subspan(start, std::min(size, all.size() - start));
    Batch batch(some, tags);
    Tape tape;
    Tensor loss = cross_entropy(logits_of(model, some, batch, options), batch.tags);
    double value = loss.item();
    train::check_loss(value);
    tape.backward(loss);
    optim::clip_grad_norm(adam.parameters(), 5);
    adam.step();
    adam.zero_grad();
    progress.advance(std::ssize(batch.tweet_sizes), value);
  }
  progress.clear();
  return fmt::format("epoch {:2}/{}  training loss {:.4f}  {:5.2f} s", epoch, options.epochs, progress.loss(),
                     progress.seconds());
}

/// Throws: std::runtime_error for a tag that the model does not have.
void check_tags(const std::vector<Tweet>& tweets, const Tags& tags) {
  for (const Tweet& tweet : tweets)
    for (const std::string& tag : tweet.tags)
      if (tags[tag] < 0)
        throw std::runtime_error(
            fmt::format("the model that was loaded does not know the tag '{}'.", io::printable(tag)));
}

/// Offers the weights after each epoch, and the loaded ones before the first.
void train_model(Tagger& model, train::BestWeights& best, std::vector<Tweet>& tweets, const std::vector<Tweet>& dev,
                 const Tags& tags, const Options& options) {
  optim::Adam adam(model.parameters(), {.learning_rate = options.learning_rate});
  fmt::print("{} tweets, {} tags, {} parameters\n", tweets.size(), tags.size(), model.parameter_count());
  std::fflush(stdout);
  std::mt19937_64 random(options.seed);
  auto offer = [&](const std::string& after) {
    double reached = accuracy(model, dev, tags, options);
    best.offer(reached);
    fmt::print("{}  dev {:.2f} %\n", after, reached);
    samples::flush_output();
  };
  if (!options.load.empty() && options.epochs > 0) offer("loaded weights");
  for (int epoch = 1; epoch <= options.epochs; ++epoch)
    offer(train_epoch(model, adam, tweets, tags, options, epoch, random));
}

/// The loss of a batch, packed and padded.
void compare_padded(Tagger& model, std::span<const Tweet> tweets, const Tags& tags) {
  model.eval();
  Batch batch(tweets.first(std::min<std::size_t>(tweets.size(), 32)), tags);
  double packed = cross_entropy(model(batch), batch.tags).item();
  double padded = cross_entropy(PaddedTagger(model)(batch), batch.tags).item();
  fmt::print("loss of {} tweets: packed {:.7f}, padded and masked {:.7f}, difference {:.1e}\n",
             batch.tweet_sizes.size(), packed, padded, std::abs(packed - padded));
  model.train();
}

io::Metadata words_about(const Tags& tags, const Options& o) {
  return {{"sample", "tweet_tagger"},
          {"tags", fmt::format("{}", fmt::join(tags.names, "\n"))},
          {"sizes", fmt::format("{} {} {} {}", o.characters, o.hidden, o.character_layers, o.word_layers)}};
}

/// Reads sizes and tags from a file's `words_about`.
Tags loaded_tags(const io::Contents& file, Options& o) {
  auto found = file.metadata.find("tags"), sizes = file.metadata.find("sizes");
  if (found == file.metadata.end() || sizes == file.metadata.end())
    throw std::runtime_error(fmt::format("'{}' was not saved by tweet_tagger.", io::printable(o.load)));
  std::istringstream numbers(sizes->second), lines(found->second);
  if (!(numbers >> o.characters >> o.hidden >> o.character_layers >> o.word_layers))
    throw std::runtime_error(fmt::format("'{}' does not say the model's sizes.", io::printable(o.load)));
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return Tags(names);
}

void print_table(Tagger& model, const Tags& tags, const Options& options,
                 const std::vector<std::pair<std::string, std::vector<Tweet>>>& sets) {
  fmt::print("\n{:<8}{:>8}{:>8}{:>12}\n", "", "tweets", "words", "right");
  for (const auto& [name, tweets] : sets) {
    std::size_t words = 0;
    for (const Tweet& tweet : tweets) words += tweet.words.size();
    fmt::print("{:<8}{:>8}{:>8}{:>10.2f} %\n", name, tweets.size(), words, accuracy(model, tweets, tags, options));
  }
}

void run(Options options) {
  manual_seed(options.seed);
  bool trains = options.epochs > 0 || options.load.empty();
  std::vector<Tweet> tweets, dev, test;
  if (trains) tweets = options.train.empty() ? made_up_tweets(options.seed, 500) : read_tweets(options.train);
  if (!options.test.empty()) test = read_tweets(options.test);
  if (!options.dev.empty()) {
    dev = read_tweets(options.dev);
  } else if (trains) {  // a tenth of the training set
    std::size_t held_back = (tweets.size() + 9) / 10;
    if (tweets.size() == held_back)
      throw std::runtime_error("there are too few tweets to hold some back; name a --dev file.");
    dev.assign(tweets.end() - static_cast<std::ptrdiff_t>(held_back), tweets.end());
    tweets.resize(tweets.size() - held_back);
  }
  io::Contents file;
  if (!options.load.empty()) file = io::load(options.load);
  Tags tags = options.load.empty() ? Tags(tweets) : loaded_tags(file, options);
  check_tags(tweets, tags);
  Tagger model(tags.size(), options);
  // The sample's metadata shows that the file is not PyTorch's, even in files older than reel's format mark.
  if (!options.load.empty()) io::load_into(model, file, {.from_pytorch = false});
  io::Metadata about = words_about(tags, options);
  if (!options.save.empty()) io::check_save(options.save, model, about);
  train::BestWeights best(model);
  samples::train_and_save(
      best, options.save, [&] { train_model(model, best, tweets, dev, tags, options); },
      [&] { io::save(options.save, model, about); });
  if (options.compare_padded && !dev.empty()) compare_padded(model, dev, tags);

  std::vector<std::pair<std::string, std::vector<Tweet>>> sets;
  if (!dev.empty()) sets.emplace_back("dev", std::move(dev));
  if (!test.empty()) sets.emplace_back("test", std::move(test));
  if (!sets.empty()) print_table(model, tags, options, sets);
}

int main(int argc, char** argv) {
  Options options;
  samples::CommandLine line("Tags the words of tweets with their parts of speech, from nothing but their characters.",
                            "tweet_tagger");
  line.add_option("--train", options.train, "tweets to learn from; without it, a small made-up language");
  line.add_option("--dev", options.dev,
                  "tweets that choose the best epoch; without it, a tenth of those to learn from");
  line.add_option("--test", options.test, "tweets to evaluate the result on");
  line.add_option("--characters", options.characters, "size of a character's vector", samples::at_least(1));
  line.add_option("--hidden", options.hidden, "size of an LSTM's state", samples::at_least(1));
  line.add_option("--character-layers", options.character_layers, "LSTM layers over characters",
                  samples::between(0, 8));
  line.add_option("--word-layers", options.word_layers, "LSTM layers over words", samples::between(0, 8));
  line.add_option("--batch", options.batch, "tweets per step", samples::at_least(1));
  line.add_option("--epochs", options.epochs, "passes over the tweets; 0 trains nothing", samples::at_least(0));
  line.add_option("--learning-rate", options.learning_rate, "Adam's", samples::at_least(0));
  line.add_option("--dropout", options.dropout, "of words' vectors and of what the tags are read from",
                  samples::between(0.0, 0.9));
  line.add_option("--batching", options.batching,
                  "packed: the words of all tweets in one call of a layer; on: code for one word, many of which run at "
                  "once; off: that code, one word after the other",
                  samples::one_of({"packed", "on", "off"}));
  line.add_option("--seed", options.seed, "of all random numbers", samples::at_least(0));
  line.add_option("--save", options.save, samples::save_help);
  line.add_option("--load", options.load,
                  "file of weights to start with, which an epoch has to beat to be saved; its sizes hold");
  line.add_flag("--compare-padded", options.compare_padded, "also compute the loss with padding and masks");
  return line.run(argc, argv, [&] { run(options); });
}
