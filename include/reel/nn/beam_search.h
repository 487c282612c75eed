#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <reel/tensor.h>

/// \file
/// Beam search for the likeliest sequences of a model that gives one token at a time, in any state: an LSTM's with the
/// rows of attention so far, or the cached keys and values of a transformer.
///
///     auto step = [&](const State& state, std::int64_t token) { return model.next(state, token); };
///     auto found = nn::beam_search(model.start(source), step, {.beams = 5, .begin = begin, .end = end});
///     std::vector<std::int64_t> translation = found[0].tokens;

namespace reel::nn {

/// Options of beam_search.
struct BeamSearchOptions {
  /// How many sequences are followed at a time; at least 1, which is the greedy choice. Default 5.
  std::int64_t beams = 5;
  /// The token that `step` is given before the first. Default 0.
  std::int64_t begin = 0;
  /// The token that ends a sequence. Default 1.
  std::int64_t end = 1;
  /// The largest number of tokens of a sequence, its end included; at least 1. Default 100.
  std::int64_t most_tokens = 100;
  /// α, at least 0: sequences of n tokens, their end included, are ranked by log p / ((5 + n) / 6)^α. Default 0: by their
  /// probability, which favours short sequences.
  double length_penalty = 0;
};

/// A sequence that beam_search has found.
template <class State>
struct Hypothesis {
  std::vector<std::int64_t> tokens = {};  ///< without the begin and the end
  double log_probability = 0;             ///< of the tokens, and of the end where it has one
  double score = 0;                       ///< log_probability after the length penalty
  bool has_ended = false;                 ///< false for one that has as many tokens as are allowed
  State state = {};                       ///< the state after the step that predicted the last token or the end
};

}  // namespace reel::nn

namespace reel::detail {

/// A token after the sequence of a beam.
struct Continuation {
  std::size_t beam;
  std::int64_t token;
  double log_probability;  ///< of the whole sequence
};

/// Throws: Error for options out of range.
void check_beam_search(const nn::BeamSearchOptions& options, Location where);
/// The 2 · beams likeliest continuations, best first, of sequences whose log-probabilities are `so_far`; `next` holds that
/// of each token after each of them. Throws: Error, ShapeError, DTypeError for a `next` that a step must not return.
std::vector<Continuation> best_continuations(std::span<const Tensor> next, std::span<const double> so_far,
                                             const nn::BeamSearchOptions& options, Location where);
double score_of(double log_probability, std::size_t tokens, const nn::BeamSearchOptions& options);

}  // namespace reel::detail

namespace reel::nn {

/// Finds likely sequences, best first, at most as many as there are beams. `step(state, token)` returns a pair: the
/// log-probabilities (V) or (1, V) of the token after `token`, of which −∞ excludes one, and the next state. Each step
/// follows the likeliest of all continuations of the sequences so far; the search ends when no other can rank higher. It
/// is exact if no sequence is dropped, and greedy with one beam, whatever the length penalty. Sequences of different
/// lengths are compared by their scores. Steps of the beams run one after the other; `batch_map` over searches runs equal
/// ops of theirs as one.
/// Throws: Error for options out of range and a log-probability that is NaN; ShapeError, DTypeError for log-probabilities
/// that are not (V) or not floating, or of which V is not above the end; what `step` throws.
/// Source: Wu et al., Google's neural machine translation system (2016), section 7, for the length penalty.
template <class State, class Step>
std::vector<Hypothesis<State>> beam_search(State initial, Step step, const BeamSearchOptions& options = {},
                                           Location where = Location::here()) {
  reel::detail::check_beam_search(options, where);
  auto beams = static_cast<std::size_t>(options.beams), most = static_cast<std::size_t>(options.most_tokens);
  auto better = [](const Hypothesis<State>& a, const Hypothesis<State>& b) { return a.score > b.score; };
  auto score = [&](double log_probability, std::size_t tokens) {
    return reel::detail::score_of(log_probability, tokens, options);
  };
  std::vector<Hypothesis<State>> live(1), ended;
  live[0].state = std::move(initial);
  // A longer sequence is no likelier, and the length penalty helps the longest most. One beam has made its greedy choice.
  auto is_decided = [&] {
    return ended.size() == beams && (beams == 1 || score(live[0].log_probability, most) <= ended.back().score);
  };
  for (std::size_t length = 1; length <= most && !live.empty() && !is_decided(); ++length) {
    std::vector<Tensor> next;
    std::vector<double> so_far;
    std::vector<State> states;
    for (const Hypothesis<State>& one : live) {
      auto [log_probabilities, state] = step(one.state, one.tokens.empty() ? options.begin : one.tokens.back());
      next.push_back(std::move(log_probabilities));
      states.push_back(std::move(state));
      so_far.push_back(one.log_probability);
    }
    std::vector<Hypothesis<State>> longer;
    std::size_t rank = 0;
    for (auto [beam, token, log_probability] : reel::detail::best_continuations(next, so_far, options, where)) {
      Hypothesis<State> one{live[beam].tokens, log_probability, score(log_probability, length), token == options.end,
                            states[beam]};
      // An end counts if its sequence would be followed.
      if (bool is_followed = rank++ < beams; one.has_ended) {
        if (is_followed) ended.push_back(std::move(one));
      } else if (longer.size() < beams) {
        one.tokens.push_back(token);
        longer.push_back(std::move(one));
      }
    }
    live = std::move(longer);
    if (length == most) std::move(live.begin(), live.end(), std::back_inserter(ended));
    std::stable_sort(ended.begin(), ended.end(), better);
    if (ended.size() > beams) ended.erase(ended.begin() + options.beams, ended.end());
  }
  return ended;
}

}  // namespace reel::nn
