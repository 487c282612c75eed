#include <numeric>

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

  static std::int64_t allowed(std::int64_t action, std::size_t stack_size, bool buffer_is_empty) {
    if (stack_size < 2) action = shift;
    return action == shift && buffer_is_empty ? left_arc : action;
  }
  Tensor from_top(const std::vector<Tensor>& all, std::size_t i) const {
    return i < all.size() ? all[all.size() - 1 - i] : nothing;
  }
  Tensor loss(const ToParse& sentence, const BatchOptions&) const {
    std::vector<Tensor> buffer, stack, losses;  // the buffer's next word is its last
    LSTMState state = reader.initial_state(1);
    for (auto word = sentence.words.rbegin(); word != sentence.words.rend(); ++word) {
      state = reader(words(tensor({*word})), state);
      buffer.push_back(state.h);
    }
    for (std::int64_t correct : sentence.correct) {
      Tensor seen = concat({from_top(stack, 1), from_top(stack, 0), from_top(buffer, 0)}, 1);
      Tensor scores = outer(tanh(inner(seen)));
      losses.push_back(cross_entropy(scores, tensor({correct}), {.reduction = LossReduction::sum}));
      std::int64_t action = allowed(argmax(scores).item<std::int64_t>(), stack.size(), buffer.empty());
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

  // A step of all parsers at a time.
  struct State {
    const ToParse* sentence;
    std::vector<Tensor> buffer, stack;  // rows
  };
  Tensor loss_of_all(const std::vector<ToParse>& all) const {
    std::vector<std::int64_t> read, labels;
    nn::Packed inputs;
    for (const ToParse& one : all) {
      read.insert(read.end(), one.words.rbegin(), one.words.rend());
      inputs.lengths.push_back(std::ssize(one.words));
    }
    inputs.elements = words(tensor(read));
    Tensor lengths = tensor(inputs.lengths);
    std::vector<Tensor> rows =
        split(nn::pack(lstm(inputs.padded(), {}, reader.weights(), {.lengths = lengths}).output, lengths).elements, 1);
    std::vector<State> states;
    for (auto row = rows.begin(); const ToParse& one : all) {
      states.push_back({&one, {row, row + std::ssize(one.words)}, {}});
      row += std::ssize(one.words);
    }
    std::vector<Tensor> scores;
    for (std::size_t step = 0;; ++step) {
      std::erase_if(states, [&](const State& one) { return step == one.sentence->correct.size(); });
      if (states.empty()) break;
      std::vector<Tensor> seen;
      for (const State& one : states) {
        seen.insert(seen.end(), {from_top(one.stack, 1), from_top(one.stack, 0), from_top(one.buffer, 0)});
        labels.push_back(one.sentence->correct[step]);
      }
      scores.push_back(outer(tanh(inner(reshape(concat(seen), {-1, 3 * word_size})))));
      std::vector<std::int64_t> actions = argmax(scores.back(), 1).to_vector<std::int64_t>();
      std::vector<Tensor> parts;
      std::vector<State*> composing;
      for (std::size_t i = 0; i < states.size(); ++i) {
        auto& [sentence, buffer, stack] = states[i];
        std::int64_t action = allowed(actions[i], stack.size(), buffer.empty());
        if (action == shift) {
          stack.push_back(buffer.back());
          buffer.pop_back();
          continue;
        }
        std::size_t top = stack.size() - 1;
        parts.insert(parts.end(), {stack[top - (action != left_arc)], stack[top - (action == left_arc)]});
        stack.resize(top - 1);
        composing.push_back(&states[i]);
      }
      if (composing.empty()) continue;
      std::vector<Tensor> made = split(tanh(compose(reshape(concat(parts), {-1, 2 * word_size}))), 1);
      for (std::size_t i = 0; i < made.size(); ++i) composing[i]->stack.push_back(made[i]);
    }
    return cross_entropy(concat(scores), tensor(labels), {.reduction = LossReduction::sum});
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
  // Each step orders the rows by their next layer; those of chains that have ended are left behind.
  Tensor loss_of_all(const std::vector<Chain>& all) const {
    Tensor h = expand(input, {std::ssize(all), size});
    std::vector<std::size_t> chains(all.size());
    std::iota(chains.begin(), chains.end(), 0);
    std::vector<Tensor> ends;
    for (std::size_t step = 0; !chains.empty(); ++step) {
      std::vector<std::int64_t> rows[5];  // by layer; the last ones have ended
      std::vector<std::size_t> next[5];
      for (std::size_t i = 0; i < chains.size(); ++i) {
        const std::vector<std::int64_t>& own = all[chains[i]].layers;
        std::size_t layer = step < own.size() ? static_cast<std::size_t>(own[step]) : 4;
        rows[layer].push_back(static_cast<std::int64_t>(i));
        next[layer].push_back(chains[i]);
      }
      std::vector<std::int64_t> order;
      chains.clear();
      for (std::size_t layer = 0; layer < 5; ++layer) {
        order.insert(order.end(), rows[layer].begin(), rows[layer].end());
        if (layer < 4) chains.insert(chains.end(), next[layer].begin(), next[layer].end());
      }
      Tensor ordered = take(h, tensor(order), 0);
      std::vector<Tensor> parts;
      std::int64_t start = 0;
      for (std::size_t layer = 0; layer < 5; ++layer) {
        std::int64_t end = start + std::ssize(rows[layer]);
        if (end == start) continue;
        Tensor own = slice(ordered, 0, start, end);
        if (layer < 4)
          parts.push_back(layers[layer](own));
        else
          ends.push_back(own);
        start = end;
      }
      if (!parts.empty()) h = tanh(concat(parts));
    }
    return sum(concat(ends));
  }
};

}  // namespace

static std::vector<ToParse> to_parse() {
  Splitmix random(examples_seed);
  std::vector<ToParse> made(sentence_count);
  for (ToParse& one : made) {
    std::size_t length = 5 + random.next() % 26;
    one.words = random_classes(random, vocabulary, length);
    one.correct = random_classes(random, action_count, 2 * length - 1);
  }
  return made;
}

static std::vector<Chain> chains() {
  Splitmix random(examples_seed);
  std::vector<Chain> made(sentence_count);
  for (Chain& one : made) one.layers = random_classes(random, 4, 5 + random.next() % 56);
  return made;
}

std::vector<ExampleWorkload> parser_workloads() {
  return {
      {"arc-standard parser, actions predicted",
       [](const BatchOptions& options) { return train_examples<Parser>(to_parse(), options); },
       [] { return train_by_hand<Parser>(to_parse()); }, 0.7},
      {"random chains of 5 to 60 layers",
       [](const BatchOptions& options) { return train_examples<Chains>(chains(), options); },
       [] { return train_by_hand<Chains>(chains()); }, 0.8},
  };
}

std::vector<ExampleWorkload> grouped_workloads() {
  std::vector<ExampleWorkload> all = sentence_workloads();
  for (ExampleWorkload& one : parser_workloads()) all.push_back(std::move(one));
  all.push_back(lattice_workload());
  return all;
}

}  // namespace reel_bench
