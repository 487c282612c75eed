#include <algorithm>
#include <cmath>
#include <functional>

#include "drawn.h"
#include "example_training.h"

namespace reel_bench {

using namespace reel;

std::vector<std::int64_t> random_classes(Splitmix& random, std::int64_t below, std::size_t count) {
  std::vector<std::int64_t> classes(count);
  for (std::int64_t& one : classes) one = static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(below));
  return classes;
}

namespace {

constexpr std::int64_t characters = 80, vocabulary = 5000, tags = 9;
constexpr std::int64_t character_size = 20, word_size = 128, character_hidden = 64, hidden = 50, mlp_size = 32;
const nn::EmbeddingLayerOptions by_rows{.row_gradient = true};

using Word = std::vector<std::int64_t>;
struct Sentence {
  std::vector<std::int64_t> words;
  std::vector<Word> spellings;
  std::vector<std::int64_t> labels;  // a tag of each word, or a translation
};

std::vector<Sentence> sentences(std::int64_t classes, bool translated) {
  Splitmix random(examples_seed);
  std::vector<Sentence> made(sentence_count);
  for (Sentence& one : made) {
    std::size_t length = 5 + random.next() % 26;
    one.words = random_classes(random, vocabulary, length);
    for (std::size_t i = 0; i < length; ++i)
      one.spellings.push_back(random_classes(random, characters, 2 + random.next() % 11));
    one.labels = random_classes(random, classes, translated ? 5 + random.next() % 26 : length);
  }
  return made;
}

// The states after each input, or from the last input on.
std::vector<Tensor> states(const nn::LSTMCell& cell, std::vector<Tensor> inputs, bool reversed = false) {
  if (reversed) std::ranges::reverse(inputs);
  LSTMState state = cell.initial_state(1);
  for (Tensor& one : inputs) {
    state = cell(one, state);
    one = state.h;
  }
  if (reversed) std::ranges::reverse(inputs);
  return inputs;
}

std::vector<Tensor> looked_up(const nn::Embedding& table, const std::vector<std::int64_t>& indices) {
  std::vector<Tensor> vectors;
  for (std::int64_t index : indices) vectors.push_back(table(tensor({index})));
  return vectors;
}

// The elements of all sentences, one after the other.
template <class Of>
std::vector<std::int64_t> joined(const std::vector<Sentence>& all, Of of) {
  std::vector<std::int64_t> made;
  for (const Sentence& one : all) made.insert(made.end(), (one.*of).begin(), (one.*of).end());
  return made;
}

struct BiLSTM : nn::Module {
  nn::LSTMCell forwards, backwards;

  BiLSTM(nn::Module& parent, std::string_view name, std::int64_t input, std::int64_t size)
      : forwards(*this, "forwards", input, size), backwards(*this, "backwards", input, size) {
    join(parent, name);
  }
  auto operator()(const std::vector<Tensor>& inputs) const {
    return both([&] { return states(forwards, inputs); }, [&] { return states(backwards, inputs, true); });
  }
  /// All sequences at once.
  LSTMOutput operator()(const nn::Packed& inputs) const {
    const RecurrentWeights weights[] = {forwards.weights(), backwards.weights()};
    return lstm(inputs.padded(), {}, weights, {.lengths = tensor(inputs.lengths), .bidirectional = true});
  }
};

struct LayerTagger : nn::Module {
  nn::Embedding words{*this, "words", vocabulary, word_size, by_rows};
  nn::LSTM reader{*this, "reader", word_size, word_size, {.bidirectional = true}};
  nn::Linear outer{*this, "outer", 2 * word_size, tags};

  Tensor loss(const Sentence& sentence, const BatchOptions&) const {
    Tensor read = reader(unsqueeze(words(tensor(sentence.words)), 1)).output;
    return cross_entropy(outer(squeeze(read, 1)), tensor(sentence.labels), {.reduction = LossReduction::sum});
  }
  Tensor loss_of_all(const std::vector<Sentence>& all) const {
    nn::Packed inputs{words(tensor(joined(all, &Sentence::words))), {}};
    for (const Sentence& one : all) inputs.lengths.push_back(std::ssize(one.words));
    return cross_entropy(outer(reader(inputs).output.elements), tensor(joined(all, &Sentence::labels)),
                         {.reduction = LossReduction::sum});
  }
};

struct CharTagger : nn::Module {
  nn::Embedding letters{*this, "letters", characters, character_size, by_rows};
  nn::Embedding words{*this, "words", vocabulary, word_size, by_rows};
  BiLSTM speller{*this, "speller", character_size, character_hidden};
  BiLSTM reader{*this, "reader", word_size + 2 * character_hidden, hidden};
  nn::Linear inner{*this, "inner", 2 * hidden, mlp_size}, outer{*this, "outer", mlp_size, tags};

  Tensor vector_of(std::int64_t word, const Word& spelling) const {
    auto [first, last] = speller(looked_up(letters, spelling));
    return concat({words(tensor({word})), first.back(), last.front()}, 1);
  }
  Tensor loss(const Sentence& sentence, const BatchOptions& options) const {
    std::vector<std::size_t> indices(sentence.words.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
    BatchOptions inner_options = options;
    inner_options.report = nullptr;
    std::vector<Tensor> vectors = batch_map(
        indices, [&](std::size_t i) { return vector_of(sentence.words[i], sentence.spellings[i]); }, inner_options);
    auto [left, right] = reader(vectors);
    Tensor total;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      Tensor scores = outer(tanh(inner(concat({left[i], right[i]}, 1))));
      Tensor one = cross_entropy(scores, tensor({sentence.labels[i]}), {.reduction = LossReduction::sum});
      total = total.defined() ? total + one : one;
    }
    return total;
  }
  Tensor loss_of_all(const std::vector<Sentence>& all) const {
    std::vector<std::int64_t> spelt, word_lengths, lengths;
    for (const Sentence& one : all) {
      lengths.push_back(std::ssize(one.words));
      for (const Word& word : one.spellings) {
        spelt.insert(spelt.end(), word.begin(), word.end());
        word_lengths.push_back(std::ssize(word));
      }
    }
    Tensor ends = speller(nn::Packed{letters(tensor(spelt)), word_lengths}).h_n;
    Tensor vectors = concat({words(tensor(joined(all, &Sentence::words))), ends(0), ends(1)}, 1);
    nn::Packed read = nn::pack(reader(nn::Packed{vectors, lengths}).output, tensor(lengths));
    return cross_entropy(outer(tanh(inner(read.elements))), tensor(joined(all, &Sentence::labels)),
                         {.reduction = LossReduction::sum});
  }
};

struct Attention : nn::Module {
  static constexpr std::int64_t size = 64;
  nn::Embedding words{*this, "words", vocabulary, word_size, by_rows};
  nn::Embedding written{*this, "written", vocabulary, word_size, by_rows};
  BiLSTM reader{*this, "reader", word_size, size};
  nn::LSTMCell writer{*this, "writer", word_size + 2 * size, 2 * size};
  nn::Linear inner{*this, "inner", 4 * size, mlp_size}, outer{*this, "outer", mlp_size, 500};

  Tensor loss(const Sentence& sentence, const BatchOptions&) const {
    auto [left, right] = reader(looked_up(words, sentence.words));
    Tensor read = concat({concat(left), concat(right)}, 1), keys = transpose(read);
    LSTMState state = writer.initial_state(1);
    std::int64_t previous = 0;
    std::vector<Tensor> scores;
    for (std::int64_t word : sentence.labels) {
      Tensor seen = matmul(softmax(matmul(state.h, keys)), read);
      state = writer(concat({written(tensor({previous})), seen}, 1), state);
      scores.push_back(outer(tanh(inner(concat({state.h, seen}, 1)))));
      previous = word;
    }
    return cross_entropy(concat(scores), tensor(sentence.labels), {.reduction = LossReduction::sum});
  }
  Tensor loss_of_all(std::vector<Sentence> all) const {
    // The sentences that are still written are the first rows.
    std::ranges::stable_sort(all, std::greater(), [](const Sentence& one) { return one.labels.size(); });
    std::vector<std::int64_t> lengths, previous, labels, rows;
    for (const Sentence& one : all) lengths.push_back(std::ssize(one.words));
    for (std::size_t t = 0; t < all[0].labels.size(); ++t) {
      std::int64_t count = 0;
      for (; count < std::ssize(all) && t < all[count].labels.size(); ++count) {
        previous.push_back(t == 0 ? 0 : all[count].labels[t - 1]);
        labels.push_back(all[count].labels[t]);
      }
      rows.push_back(count);
    }
    nn::Packed inputs{words(tensor(joined(all, &Sentence::words))), lengths};
    Tensor read = contiguous(transpose(reader(inputs).output, 0, 1)), keys = contiguous(transpose(read, 1, 2));
    Tensor ignored = unsqueeze(where(transpose(inputs.mask()), 0.0, -INFINITY), 1);
    Tensor inputs_written = written(tensor(previous));
    LSTMState state = writer.initial_state(rows[0]);
    std::vector<Tensor> shown;
    std::int64_t start = 0;
    for (std::int64_t count : rows) {
      auto first = [=](const Tensor& x) { return slice(x, 0, 0, count); };
      Tensor h = first(state.h);
      Tensor weights = softmax(matmul(unsqueeze(h, 1), first(keys)) + first(ignored));
      Tensor seen = squeeze(matmul(weights, first(read)), 1);
      state = writer(concat({slice(inputs_written, 0, start, start + count), seen}, 1), {h, first(state.c)});
      shown.push_back(concat({state.h, seen}, 1));
      start += count;
    }
    return cross_entropy(outer(tanh(inner(concat(shown)))), tensor(labels), {.reduction = LossReduction::sum});
  }
};

}  // namespace

std::vector<ExampleWorkload> sentence_workloads() {
  return {
      {"BiLSTM tagger, nn::LSTM",
       [](const BatchOptions& options) { return train_examples<LayerTagger>(sentences(tags, false), options); },
       [] { return train_by_hand<LayerTagger>(sentences(tags, false)); }, 0.75},
      {"BiLSTM tagger, cells over characters and words",
       [](const BatchOptions& options) { return train_examples<CharTagger>(sentences(tags, false), options); },
       [] { return train_by_hand<CharTagger>(sentences(tags, false)); }, 0.7},
      {"BiLSTM with attention",
       [](const BatchOptions& options) { return train_examples<Attention>(sentences(500, true), options); },
       [] { return train_by_hand<Attention>(sentences(500, true)); }, 0.7},
  };
}

}  // namespace reel_bench
