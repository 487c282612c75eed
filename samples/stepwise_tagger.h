#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <vector>

#include <reel/batching.h>
#include <reel/reel.h>

namespace samples {

/// Computes what a tagger of packed sequences computes, written for one tweet and one word at a time, step by step.
template <class Tagger>
class StepwiseTagger {
 public:
  explicit StepwiseTagger(const Tagger& model) : model_(model) {}

  /// Logits (words, tags) of a tweet, whose words are examples of a batch_map: `tweet.words`, and their ids
  /// `tweet.ids`, (words).
  template <class Tweet>
  reel::Tensor operator()(const Tweet& tweet, const reel::BatchOptions& options) const {
    auto vector_of = [&](std::int64_t i) {
      return word_vector(tweet.words[static_cast<std::size_t>(i)], slice(tweet.ids, 0, i, i + 1));
    };
    reel::Tensor states = concat(batch_map(std::views::iota(std::int64_t{0}, tweet.ids.numel()), vector_of, options));
    for (const reel::nn::LSTM& lstm : model_.over_words) states = run_steps(lstm, states);
    return model_.output(model_.drop(states));
  }

 private:
  using Tensor = reel::Tensor;

  // The vector (1, D) of a word with an id (1).
  Tensor word_vector(const std::string& word, const Tensor& id) const {
    std::vector<std::int64_t> bytes;
    for (unsigned char byte : word) bytes.push_back(byte);
    Tensor letters = model_.characters(reel::tensor(bytes));
    for (const reel::nn::LSTM& lstm : model_.over_characters) letters = run_steps(lstm, letters);
    return model_.drop(reel::concat({mean(letters, {0}, {.keepdims = true}), model_.words(id)}, 1));
  }

  // The states (T, 2 H) that layers of two directions show over one sequence x (T, I).
  static Tensor run_steps(const reel::nn::LSTM& lstm, Tensor x) {
    auto run_net = [&](const reel::nn::LSTMCell& cell, bool reversed) {
      std::vector<Tensor> steps = split(x, 1);
      if (reversed) std::ranges::reverse(steps);
      reel::nn::LSTMState state = cell.initial_state(1);
      for (Tensor& step : steps) {
        state = cell(step, state);
        step = state.h;
      }
      if (reversed) std::ranges::reverse(steps);
      return concat(steps);
    };
    for (std::size_t net = 0; net < lstm.nets.size(); net += 2) {
      auto [forwards, backwards] =
          reel::both([&] { return run_net(lstm.nets[net], false); }, [&] { return run_net(lstm.nets[net + 1], true); });
      x = reel::concat({forwards, backwards}, 1);
    }
    return x;
  }

  const Tagger& model_;
};

/// Logits (words, tags) of a batch of tweets, each of which is an example of a batch_map, and each of its words an example
/// within it.
template <class Tagger, class Tweet>
reel::Tensor stepwise_logits(const Tagger& model, const std::vector<Tweet>& tweets, const reel::BatchOptions& options) {
  StepwiseTagger stepwise(model);
  return concat(batch_map(
      tweets, [&](const Tweet& tweet) { return stepwise(tweet, options); }, options));
}

}  // namespace samples
