#include <algorithm>

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

struct BiLSTM : nn::Module {
  nn::LSTMCell forwards, backwards;

  BiLSTM(nn::Module& parent, std::string_view name, std::int64_t input, std::int64_t size)
      : forwards(*this, "forwards", input, size), backwards(*this, "backwards", input, size) {
    join(parent, name);
  }
  auto operator()(const std::vector<Tensor>& inputs) const {
    return both([&] { return states(forwards, inputs); }, [&] { return states(backwards, inputs, true); });
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
};

}  // namespace

Work char_tagger(const BatchOptions& options) { return train_examples<CharTagger>(sentences(tags, false), options); }
Work attention(const BatchOptions& options) { return train_examples<Attention>(sentences(500, true), options); }

}  // namespace reel_bench
