#include "made_up.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <reel/ops/random.h>

namespace samples {

using reel::data::LabelledTree;
using reel::data::Sentence;

namespace {

class Grammar {
 public:
  explicit Grammar(std::uint64_t seed) : random_(seed) {}

  LabelledTree grow() {
    LabelledTree tree;
    grow(tree, 4);
    return tree;
  }

 private:
  static constexpr std::int64_t sentiments = 5, neutral = 2;

  std::size_t below(std::size_t bound) { return random_() % bound; }
  static std::int64_t add(LabelledTree& tree, LabelledTree::Node node) {
    tree.nodes.push_back(std::move(node));
    return std::ssize(tree.nodes) - 1;
  }
  static std::int64_t leaf(LabelledTree& tree, const std::string& word, std::int64_t value) {
    tree.words.push_back(word);
    return add(tree, {.label = {}, .value = value, .word = std::ssize(tree.words) - 1});
  }
  static std::int64_t value_of(const LabelledTree& tree, std::int64_t node) {
    return tree.nodes[static_cast<std::size_t>(node)].value;
  }
  std::int64_t grow(LabelledTree& tree, int depth) {
    static const std::vector<std::string> words[] = {
        {"awful", "dreadful"}, {"bad", "dull"}, {"film", "plot", "actor"}, {"good", "warm"}, {"superb", "brilliant"}};
    std::size_t kind = depth == 0 ? 0 : below(4);
    if (kind == 0) {
      std::size_t value = below(sentiments);
      return leaf(tree, words[value][below(words[value].size())], static_cast<std::int64_t>(value));
    }
    if (kind == 3) {
      std::int64_t left = grow(tree, depth - 1), right = grow(tree, depth - 1);
      return add(tree,
                 {.label = {}, .value = (value_of(tree, left) + value_of(tree, right)) / 2, .children = {left, right}});
    }
    std::int64_t word = leaf(tree, kind == 1 ? "not" : "very", neutral), phrase = grow(tree, depth - 1);
    std::int64_t from = value_of(tree, phrase);
    std::int64_t stronger = std::clamp<std::int64_t>(from + (from > neutral) - (from < neutral), 0, sentiments - 1);
    return add(tree, {.label = {}, .value = kind == 1 ? sentiments - 1 - from : stronger, .children = {word, phrase}});
  }

  std::mt19937_64 random_;
};

class Lists {
 public:
  explicit Lists(std::uint64_t seed) : random_(seed) {}

  LabelledTree grow(int depth) {
    LabelledTree tree;
    list(tree, depth);
    return tree;
  }

 private:
  static constexpr std::size_t most_words = 60;

  std::size_t below(std::size_t bound) { return random_() % bound; }
  static std::int64_t leaf(LabelledTree& tree, const std::string& word, std::int64_t value) {
    tree.words.push_back(word);
    tree.nodes.push_back({.label = {}, .value = value, .word = std::ssize(tree.words) - 1});
    return std::ssize(tree.nodes) - 1;
  }
  static std::int64_t join(LabelledTree& tree, std::int64_t left, std::int64_t right, std::int64_t value) {
    tree.nodes.push_back({.label = {}, .value = value, .children = {left, right}});
    return std::ssize(tree.nodes) - 1;
  }
  std::int64_t list(LabelledTree& tree, int depth) {
    static const std::vector<std::string> operators = {"[max", "[min", "[med", "[sm"};
    std::size_t kind = below(operators.size()), count = 2 + below(4);
    std::int64_t all = leaf(tree, operators[kind], -1);
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i) {
      auto digit = static_cast<std::int64_t>(below(10));
      bool nests = below(4) == 0 && depth > 1 && tree.words.size() < most_words;
      std::int64_t next = nests ? list(tree, depth - 1) : leaf(tree, std::to_string(digit), digit);
      values.push_back(tree.nodes[static_cast<std::size_t>(next)].value);
      all = join(tree, all, next, value_of(kind, values));
    }
    std::int64_t value = tree.nodes.back().value, end = leaf(tree, "]", -1);
    return join(tree, all, end, value);
  }
  static std::int64_t value_of(std::size_t kind, std::vector<std::int64_t> values) {
    std::sort(values.begin(), values.end());
    std::size_t middle = values.size() / 2;
    if (kind == 0) return values.back();
    if (kind == 1) return values.front();
    if (kind == 2) return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    return std::accumulate(values.begin(), values.end(), std::int64_t{0}) % 10;
  }

  std::mt19937_64 random_;
};

}  // namespace

std::vector<LabelledTree> made_up_trees(std::uint64_t seed, int count) {
  Grammar grammar(seed);
  std::vector<LabelledTree> trees;
  for (int i = 0; i < count; ++i) trees.push_back(grammar.grow());
  return trees;
}

std::vector<LabelledTree> made_up_lists(std::uint64_t seed, int count, int depth) {
  Lists lists(seed);
  std::set<std::vector<std::string>> seen;
  std::vector<LabelledTree> trees;
  while (std::ssize(trees) < count) {
    LabelledTree tree = lists.grow(depth);
    if (seen.insert(tree.words).second) trees.push_back(std::move(tree));
  }
  return trees;
}

std::vector<Sentence> made_up_tweets(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  auto stem = [&] {
    std::string word;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) {
      word += "bdfklmnprst"[random() % 11];
      word += "aeiou"[random() % 5];
    }
    return word;
  };
  std::vector<Sentence> tweets;
  for (int i = 0; i < count; ++i) {
    Sentence& tweet = tweets.emplace_back();
    tweet.columns.resize(2);
    auto add = [&](const std::string& word, const char* tag) {
      tweet.columns[0].push_back(word);
      tweet.columns[1].emplace_back(tag);
    };
    for (std::size_t clause = 0; clause < 1 + random() % 4; ++clause) {
      add(random() % 2 ? "the" : "a", "D");
      if (random() % 2) add(stem() + "ish", "A");
      add(stem() + "er", "N");
      add(stem() + "er", "V");  // a noun behind a determiner, a verb behind a noun
      if (random() % 3 == 0) add("@" + stem(), "@");
    }
    add(random() % 2 ? "." : "!", ",");
  }
  return tweets;
}

DigitImages made_up_digits(std::uint64_t seed, int count) {
  // The ends of the segments, in a box of width 1 and height 2, and the digits that have each of them.
  struct Segment {
    double x0, y0, x1, y1;
    const char* digits;
  };
  constexpr Segment segments[] = {{0, 0, 1, 0, "02356789"}, {0, 0, 0, 1, "045689"}, {1, 0, 1, 1, "01234789"},
                                  {0, 1, 1, 1, "2345689"},  {0, 1, 0, 2, "0268"},   {1, 1, 1, 2, "013456789"},
                                  {0, 2, 1, 2, "0235689"}};
  constexpr int side = 28;
  std::mt19937_64 random(seed);
  auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  std::vector<std::uint8_t> pixels, labels;
  for (int i = 0; i < count; ++i) {
    int digit = static_cast<int>(random() % 10);
    double size = uniform(6, 9), left = uniform(6, 12), top = uniform(4, 8), slope = uniform(-0.3, 0.3),
           thick = uniform(1, 2);
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        // The place of the pixel in the digit's box.
        double v = (y - top) / size, u = (x - left) / size + slope * (v - 1), nearest = 9;
        for (const Segment& s : segments) {
          if (!std::strchr(s.digits, '0' + digit)) continue;
          double across = s.x1 - s.x0, down = s.y1 - s.y0;
          double along = std::clamp((u - s.x0) * across + (v - s.y0) * down, 0.0, 1.0);
          nearest = std::min(nearest, std::hypot(u - s.x0 - along * across, v - s.y0 - along * down));
        }
        double ink = std::clamp(thick + 0.5 - nearest * size, 0.0, 1.0) * 235 + uniform(0, 20);
        pixels.push_back(static_cast<std::uint8_t>(ink));
      }
    labels.push_back(static_cast<std::uint8_t>(digit));
  }
  return {reel::tensor(pixels, {count, side, side}), reel::tensor(labels)};
}

std::string made_up_text(std::uint64_t seed) {
  const char* nouns[] = {"cat", "dog", "fox", "crow", "bear", "child", "river", "stone"};
  const char* adjectives[] = {"old", "red", "small", "quiet"};
  const char* verbs[] = {"see", "hear", "follow", "know", "fear"};
  std::mt19937_64 random(seed);
  auto pick = [&](const auto& words) { return words[random() % std::size(words)]; };
  auto noun_phrase = [&](bool plural) {
    std::string phrase = plural ? "many " : "the ";
    while (random() % 3 == 0) phrase += fmt::format("{} ", pick(adjectives));
    return phrase + pick(nouns) + (plural ? "s" : "");
  };
  std::string text;
  while (text.size() < 60'000) {
    bool plural = random() % 2;
    text += noun_phrase(plural) + " ";
    text += pick(verbs) + std::string(plural ? " " : "s ");
    text += noun_phrase(random() % 2) + ".\n";
  }
  return text;
}

std::vector<Point> made_up_clusters(std::uint64_t seed, std::int64_t count, std::int64_t features,
                                    std::int64_t classes) {
  constexpr std::size_t clusters = 16;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  auto draw = [&](std::int64_t size, float scale) {
    std::vector<float> numbers(static_cast<std::size_t>(size));
    for (float& number : numbers) number = scale * normal(random);
    return numbers;
  };
  std::vector<std::vector<float>> centres, functions;
  for (std::size_t i = 0; i < clusters; ++i) {
    centres.push_back(draw(features, 2));
    functions.push_back(draw(features * classes, 1));
  }
  std::vector<Point> points;
  for (std::int64_t i = 0; i < count; ++i) {
    std::size_t cluster = random() % clusters;
    std::vector<float> x = draw(features, 1), values(static_cast<std::size_t>(classes));
    for (std::size_t f = 0; f < x.size(); ++f) {
      for (std::size_t c = 0; c < values.size(); ++c) values[c] += x[f] * functions[cluster][f * values.size() + c];
      x[f] += centres[cluster][f];
    }
    points.push_back({std::move(x), std::max_element(values.begin(), values.end()) - values.begin()});
  }
  return points;
}

Example made_up_date(reel::Generator& generator, bool held_back) {
  auto below = [&](std::int64_t count) {
    return reel::randint(0, count, {}, {.generator = &generator}).item<std::int64_t>();
  };
  std::int64_t number = 0;
  do number = below(36525);
  while ((number % 10 == 0) != held_back);
  constexpr const char* formats[] = {"{:%d %B %Y}", "{:%B %d, %Y}", "{:%A, %d %B %Y}", "{:%d %b '%y}",
                                     "{:%m/%d/%Y}", "{:%m/%d/%y}",  "{:%d.%m.%Y}",     "the {:%d. of %B %Y}"};
  std::chrono::system_clock::time_point day = std::chrono::sys_days(std::chrono::days(number - 7305));
  return {fmt::format(fmt::runtime(formats[below(8)]), day), fmt::format("{:%Y-%m-%d}", day)};
}

Example made_up_reversal(reel::Generator& generator, bool held_back) {
  auto length = reel::randint(4, 13, {}, {.generator = &generator}).item<std::int64_t>();
  Example example;
  int sum = 0;
  do {
    example.source.clear();
    sum = 0;
    for (auto place : reel::randint(0, 26, {length}, {.generator = &generator}).to_vector<std::int64_t>()) {
      example.source += static_cast<char>('a' + place);
      sum += static_cast<int>(place);
    }
  } while ((sum % 10 == 0) != held_back);
  example.target.assign(example.source.rbegin(), example.source.rend());
  return example;
}

}  // namespace samples
