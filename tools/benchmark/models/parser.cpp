#include "drawn.h"
#include "example_training.h"

namespace reel_bench {

using namespace reel;

namespace {

constexpr std::int64_t vocabulary = 5000, word_size = 100, mlp_size = 100;

enum Action : std::int64_t { shift, left_arc, right_arc, action_count };

struct ToParse {
  std::vector<std::int64_t> words, correct;  // correct: the action at each step
};

struct Parser : nn::Module {
  nn::Embedding words{*this, "words", vocabulary, word_size, {.row_gradient = true}};
  nn::Parameter nothing{*this, "nothing", zeros({1, word_size}).requires_grad()};
  nn::LSTMCell reader{*this, "reader", word_size, word_size};
  nn::Linear compose{*this, "compose", 2 * word_size, word_size};
  nn::Linear inner{*this, "inner", 3 * word_size, mlp_size}, outer{*this, "outer", mlp_size, action_count};

  Tensor loss(const ToParse& sentence, const BatchOptions&) const {
    std::vector<Tensor> buffer, stack, losses;  // the buffer's next word is its last
    LSTMState state = reader.initial_state(1);
    for (auto word = sentence.words.rbegin(); word != sentence.words.rend(); ++word) {
      state = reader(words(tensor({*word})), state);
      buffer.push_back(state.h);
    }
    auto from_top = [&](const std::vector<Tensor>& all, std::size_t i) -> Tensor {
      return i < all.size() ? all[all.size() - 1 - i] : nothing;
    };
    for (std::int64_t correct : sentence.correct) {
      Tensor seen = concat({from_top(stack, 1), from_top(stack, 0), from_top(buffer, 0)}, 1);
      Tensor scores = outer(tanh(inner(seen)));
      losses.push_back(cross_entropy(scores, tensor({correct}), {.reduction = LossReduction::sum}));
      auto action = argmax(scores).item<std::int64_t>();
      if (stack.size() < 2) action = shift;
      if (action == shift && buffer.empty()) action = left_arc;
      if (action == shift) {
        stack.push_back(buffer.back());
        buffer.pop_back();
      } else {
        Tensor first = from_top(stack, 1), second = from_top(stack, 0);
        stack.resize(stack.size() - 2);
        stack.push_back(tanh(compose(action == left_arc ? concat({second, first}, 1) : concat({first, second}, 1))));
      }
    }
    return sum(reel::stack(losses));
  }
};

struct Chain {
  std::vector<std::int64_t> layers;
};

struct Chains : nn::Module {
  static constexpr std::int64_t size = 128;
  nn::Parameter input{*this, "input", (rand({1, size}) - 0.5).requires_grad()};
  nn::Linear layers[4]{{*this, "first", size, size},
                       {*this, "second", size, size},
                       {*this, "third", size, size},
                       {*this, "fourth", size, size}};

  Tensor loss(const Chain& chain, const BatchOptions&) const {
    Tensor h = input;
    for (std::int64_t layer : chain.layers) h = tanh(layers[layer](h));
    return sum(h);
  }
};

}  // namespace

Work arc_standard(const BatchOptions& options) {
  Splitmix random(examples_seed);
  std::vector<ToParse> made(sentence_count);
  for (ToParse& one : made) {
    std::size_t length = 5 + random.next() % 26;
    one.words = random_classes(random, vocabulary, length);
    one.correct = random_classes(random, action_count, 2 * length - 1);
  }
  return train_examples<Parser>(std::move(made), options);
}

Work random_chains(const BatchOptions& options) {
  Splitmix random(examples_seed);
  std::vector<Chain> made(sentence_count);
  for (Chain& one : made) one.layers = random_classes(random, 4, 5 + random.next() % 56);
  return train_examples<Chains>(std::move(made), options);
}

std::vector<ExampleWorkload> grouped_workloads() {
  return {
      {"BiLSTM tagger, words of characters", sentence_count, char_tagger},
      {"BiLSTM with attention", sentence_count, attention},
      {"arc-standard parser, actions predicted", sentence_count, arc_standard},
      {"random chains of 5 to 60 layers", sentence_count, random_chains},
  };
}

}  // namespace reel_bench
