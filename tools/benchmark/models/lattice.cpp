#include <algorithm>

#include "drawn.h"
#include "example_training.h"

namespace reel_bench {

using namespace reel;

namespace {

// An LSTM over characters, whose state s = (h, c) after a word's last character is mixed with that of an LSTM over the word.
//
//     word w from character b to e    s_w = cell(embedding of w, s before b),  g_w = σ(W h_w + V h_e + u)
//     after character e, n words      s_e + Σ g_w (s_w − s_e) / (1 + n)
//
// Source: after Zhang and Yang, Chinese NER using lattice LSTM (ACL 2018), whose gates of words are normalised otherwise.

constexpr std::int64_t characters = 3000, vocabulary = 5000, size = 128, tags = 9;

struct LatticeWord {
  std::int64_t word;
  std::size_t start;  // the first character
};
struct LatticeSentence {
  std::vector<std::int64_t> letters, labels;
  std::vector<std::vector<LatticeWord>> ending;  // at each character
};

std::vector<LatticeSentence> sentences() {
  Splitmix random(examples_seed);
  std::vector<LatticeSentence> made(sentence_count);
  for (LatticeSentence& one : made) {
    std::size_t length = 10 + random.next() % 31;
    one.letters = random_classes(random, characters, length);
    one.labels = random_classes(random, tags, length);
    one.ending.resize(length);
    for (std::size_t end = 1; end < length; ++end)
      for (std::size_t before = 1; before <= std::min<std::size_t>(end, 3); ++before)
        if (random.next() % 3 == 0)
          one.ending[end].push_back({static_cast<std::int64_t>(random.next() % vocabulary), end - before});
  }
  return made;
}

struct Lattice : nn::Module {
  nn::Embedding letters{*this, "letters", characters, size, {.row_gradient = true}};
  nn::Embedding words{*this, "words", vocabulary, size, {.row_gradient = true}};
  nn::LSTMCell reader{*this, "reader", size, size}, word_reader{*this, "word_reader", size, size};
  nn::Linear gate{*this, "gate", 2 * size, size}, outer{*this, "outer", size, tags};

  // The share of a word's state in that of its last character.
  Tensor share(const Tensor& word, const Tensor& last) const { return sigmoid(gate(concat({word, last}, 1))); }

  Tensor loss(const LatticeSentence& sentence, const BatchOptions&) const {
    std::vector<LSTMState> states{reader.initial_state(1)};
    std::vector<Tensor> shown;
    for (std::size_t i = 0; i < sentence.letters.size(); ++i) {
      LSTMState state = reader(letters(tensor({sentence.letters[i]})), states.back()), mixed = state;
      for (const LatticeWord& one : sentence.ending[i]) {
        LSTMState own = word_reader(words(tensor({one.word})), states[one.start]);
        Tensor part = share(own.h, state.h) / static_cast<double>(1 + sentence.ending[i].size());
        mixed = {mixed.h + part * (own.h - state.h), mixed.c + part * (own.c - state.c)};
      }
      states.push_back(mixed);
      shown.push_back(mixed.h);
    }
    return cross_entropy(outer(concat(shown)), tensor(sentence.labels), {.reduction = LossReduction::sum});
  }

  // A character of all sentences at a time, the longest sentence first.
  Tensor loss_of_all(std::vector<LatticeSentence> all) const {
    std::ranges::stable_sort(all, std::greater(), [](const LatticeSentence& one) { return one.letters.size(); });
    std::vector<LSTMState> states{reader.initial_state(std::ssize(all))};
    std::vector<Tensor> shown;
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < all[0].letters.size(); ++i) {
      std::vector<std::int64_t> own_letters, own_words, last;
      std::vector<Tensor> h_before, c_before;
      std::vector<double> scale;
      std::int64_t count = 0;
      for (; count < std::ssize(all) && i < all[static_cast<std::size_t>(count)].letters.size(); ++count) {
        const LatticeSentence& one = all[static_cast<std::size_t>(count)];
        own_letters.push_back(one.letters[i]);
        labels.push_back(one.labels[i]);
        for (const LatticeWord& word : one.ending[i]) {
          own_words.push_back(word.word);
          last.push_back(count);
          h_before.push_back(slice(states[word.start].h, 0, count, count + 1));
          c_before.push_back(slice(states[word.start].c, 0, count, count + 1));
          scale.push_back(1.0 / static_cast<double>(1 + one.ending[i].size()));
        }
      }
      auto first = [=](const Tensor& x) { return slice(x, 0, 0, count); };
      LSTMState state = reader(letters(tensor(own_letters)), {first(states.back().h), first(states.back().c)});
      if (!own_words.empty()) {
        LSTMState own = word_reader(words(tensor(own_words)), {concat(h_before), concat(c_before)});
        Tensor rows = tensor(last), h = take(state.h, rows, 0), c = take(state.c, rows, 0);
        Tensor part = share(own.h, h) * to(tensor(scale, {std::ssize(scale), 1}), f32);
        state = {index_add(state.h, 0, rows, part * (own.h - h)), index_add(state.c, 0, rows, part * (own.c - c))};
      }
      states.push_back(state);
      shown.push_back(state.h);
    }
    return cross_entropy(outer(concat(shown)), tensor(labels), {.reduction = LossReduction::sum});
  }
};

}  // namespace

ExampleWorkload lattice_workload() {
  return {"lattice LSTM, words over characters",
          [](const BatchOptions& options) { return train_examples<Lattice>(sentences(), options); },
          [] { return train_by_hand<Lattice>(sentences()); }, 0.7};
}

}  // namespace reel_bench
