#include <reel/batching.h>
#include <reel/nn.h>
#include <reel/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr std::int64_t vocabulary = 4, last = 3, begin_token = 0;

// A model whose log-probabilities depend on all tokens so far: a fixed random number for each prefix.
struct Prefix {
  std::vector<std::int64_t> tokens;
};
std::pair<Tensor, Prefix> continued(const Prefix& before, std::int64_t token) {
  Prefix now = before;
  now.tokens.push_back(token);
  std::uint64_t seed = 7;
  for (std::int64_t one : now.tokens) seed = seed * 31 + static_cast<std::uint64_t>(one) + 1;
  Generator generator(seed);
  return {log_softmax(2 * randn({vocabulary}, {.dtype = f64, .generator = &generator}), 0), now};
}

struct Sequence {
  std::vector<std::int64_t> tokens;
  double log_probability = 0, score = 0;
  bool has_ended = false;
};

// Every sequence of at most `most` tokens, ended, or of `most` tokens without an end.
void enumerate(const Prefix& before, Sequence so_far, std::size_t most, std::vector<Sequence>& all) {
  auto [next, state] = continued(before, so_far.tokens.empty() ? begin_token : so_far.tokens.back());
  std::vector<double> numbers = next.to_vector<double>();
  for (std::int64_t token = 0; token < vocabulary; ++token) {
    Sequence longer = so_far;
    longer.log_probability += numbers[static_cast<std::size_t>(token)];
    longer.has_ended = token == last;
    if (!longer.has_ended) longer.tokens.push_back(token);
    if (longer.has_ended || longer.tokens.size() == most)
      all.push_back(longer);
    else
      enumerate(state, longer, most, all);
  }
}

std::vector<Sequence> ranked(std::size_t most, double penalty) {
  std::vector<Sequence> all;
  enumerate({}, {}, most, all);
  for (Sequence& one : all)
    one.score =
        one.log_probability / std::pow((5.0 + static_cast<double>(one.tokens.size() + one.has_ended)) / 6.0, penalty);
  std::stable_sort(all.begin(), all.end(), [](const Sequence& a, const Sequence& b) { return a.score > b.score; });
  return all;
}

}  // namespace

TEST_CASE("beams that drop nothing find the best sequences of all, with any length penalty") {
  for (std::int64_t most : {1, 2, 4})
    for (double penalty : {0.0, 0.6, 2.0}) {
      CAPTURE(most, penalty);
      std::vector<Sequence> best = ranked(static_cast<std::size_t>(most), penalty);
      auto found = nn::beam_search(
          Prefix{}, continued,
          {.beams = 300, .begin = begin_token, .end = last, .most_tokens = most, .length_penalty = penalty});
      REQUIRE(found.size() == std::min<std::size_t>(best.size(), 300));
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].score == Approx(best[i].score));
        CHECK(found[i].tokens == best[i].tokens);
        CHECK(found[i].log_probability == Approx(best[i].log_probability));
        CHECK(found[i].has_ended == best[i].has_ended);
        CHECK(found[i].state.tokens.size() == found[i].tokens.size() + found[i].has_ended);
      }
    }
}

TEST_CASE("one beam is the greedy choice, and more beams find nothing worse") {
  Prefix state;
  std::vector<std::int64_t> greedy;
  for (std::int64_t token = begin_token; greedy.size() < 20;) {
    auto [next, after] = continued(state, token);
    token = argmax(next).item<std::int64_t>();
    state = after;
    if (token == last) break;
    greedy.push_back(token);
  }
  nn::BeamSearchOptions options{.beams = 1, .begin = begin_token, .end = last, .most_tokens = 20};
  auto found = nn::beam_search(Prefix{}, continued, options);
  for (double penalty : {0.5, 1.0, 5.0, 0.0}) {
    CAPTURE(penalty);
    options.length_penalty = penalty;
    found = nn::beam_search(Prefix{}, continued, options);
    REQUIRE(found.size() == 1);
    CHECK(found[0].tokens == greedy);
    // The end is likelier than the token that would lead to certain ones.
    auto step = [](int count, std::int64_t) {
      return std::pair(log(count == 0 ? tensor({0.05, 0.5, 0.45}) : tensor({1e-9, 1e-9, 1.0})), count + 1);
    };
    auto ended = nn::beam_search(0, step, {.beams = 1, .end = 1, .most_tokens = 10, .length_penalty = penalty});
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].tokens.empty());
    CHECK(ended[0].has_ended);
  }
  double best = found[0].score;
  options.beams = 64;
  found = nn::beam_search(Prefix{}, continued, options);
  CHECK(found.size() == 64);
  CHECK(found[0].score >= best);
  CHECK(std::is_sorted(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score > b.score; }));
}

TEST_CASE("tokens of probability 0 are never taken, and no sequence is left where all are") {
  double infinity = std::numeric_limits<double>::infinity();
  auto only = [&](std::vector<double> numbers) {
    return [=](int state, std::int64_t) { return std::pair(tensor(numbers), state); };
  };
  nn::BeamSearchOptions options{.beams = 3, .end = 2, .most_tokens = 4};
  auto found = nn::beam_search(0, only({-infinity, std::log(0.5), std::log(0.5)}), options);
  for (const auto& one : found) CHECK(std::count(one.tokens.begin(), one.tokens.end(), 0) == 0);
  CHECK(found[0].tokens.empty());
  CHECK(found[0].log_probability == Approx(std::log(0.5)));
  CHECK(nn::beam_search(0, only({-infinity, -infinity, -infinity}), options).empty());
  // Nothing ends: the longest ones are returned as they are.
  found = nn::beam_search(0, only({std::log(0.9), std::log(0.1), -infinity}), options);
  REQUIRE(found.size() == 3);
  CHECK(found[0].tokens == std::vector<std::int64_t>{0, 0, 0, 0});
  CHECK(!found[0].has_ended);
}

TEST_CASE("log-probabilities may be rows, of any floating dtype, and searches run together in batch_map") {
  manual_seed(3);
  nn::LSTMCell cell(3, 5);
  nn::Embedding embedding(vocabulary, 3);
  nn::Linear output(5, vocabulary);
  auto step = [&](const LSTMState& state, std::int64_t token) {
    LSTMState next = cell(embedding(tensor(std::vector{token})), state);
    return std::pair(log_softmax(output(next.h), 1), next);
  };
  std::vector<LSTMState> starts;
  for (int i = 0; i < 4; ++i) starts.push_back({randn({1, 5}), randn({1, 5})});
  nn::BeamSearchOptions options{.beams = 3, .begin = begin_token, .end = last, .most_tokens = 6};
  auto search = [&](const LSTMState& start) { return nn::beam_search(start, step, options)[0].tokens; };
  std::vector<std::vector<std::int64_t>> together = batch_map(starts, search);
  for (std::size_t i = 0; i < starts.size(); ++i) CHECK(together[i] == search(starts[i]));
}

TEST_CASE("a state may keep what attention has seen, and gives what attending to each prefix anew does") {
  manual_seed(4);
  nn::MultiHeadAttention self(4, 2, {.dtype = f64});
  nn::BahdanauAttention attention(4, 4, 5, {.dtype = f64});
  nn::LSTMCell cell(8, 4, {.dtype = f64});
  nn::Embedding embedding(vocabulary, 4, {.dtype = f64});
  nn::Linear output(8, vocabulary, {.dtype = f64});
  const Tensor memory = randn({1, 3, 4}, {.dtype = f64});
  struct State {
    nn::KeyValueCache cache;
    LSTMState lstm;
    Tensor context;
  };
  auto step = [&](State state, std::int64_t token) {
    Tensor seen = select(self(embedding(tensor(std::vector{token}, {1, 1})), state.cache), 1, 0);
    state.lstm = cell(concat({seen, state.context}, 1), state.lstm);
    state.context = attention(state.lstm.h, memory).context;
    return std::pair(log_softmax(output(concat({state.lstm.h, state.context}, 1)), 1), state);
  };
  auto step_anew = [&](Prefix prefix, std::int64_t token) {
    prefix.tokens.push_back(token);
    auto count = std::ssize(prefix.tokens);
    Tensor seen = self(embedding(tensor(prefix.tokens, {1, count})), {.causal = true}),
           context = zeros_like(seen(0, 0));
    context = unsqueeze(context, 0);
    LSTMState lstm = cell.initial_state(1);
    for (std::int64_t t = 0; t < count; ++t) {
      lstm = cell(concat({select(seen, 1, t), context}, 1), lstm);
      context = attention(lstm.h, memory).context;
    }
    return std::pair(log_softmax(output(concat({lstm.h, context}, 1)), 1), prefix);
  };
  nn::BeamSearchOptions options{.beams = 4, .begin = begin_token, .end = last, .most_tokens = 5};
  auto found = nn::beam_search(State{{}, cell.initial_state(1), zeros({1, 4}, {.dtype = f64})}, step, options);
  auto expected = nn::beam_search(Prefix{}, step_anew, options);
  REQUIRE(found.size() == expected.size());
  REQUIRE(found.size() == 4);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].tokens == expected[i].tokens);
    CHECK(found[i].log_probability == Approx(expected[i].log_probability));
    CHECK(found[i].state.cache.length() == std::ssize(expected[i].state.tokens));
  }
}

TEST_CASE("beam_search names what it cannot use") {
  auto returning = [](const Tensor& numbers) {
    return [=](int state, std::int64_t) { return std::pair(numbers, state); };
  };
  auto message = [&]<class E>(std::type_identity<E>, const Tensor& numbers, nn::BeamSearchOptions options = {}) {
    return error_of<E>([&] { nn::beam_search(0, returning(numbers), options); });
  };
  std::type_identity<Error> error;
  std::type_identity<ShapeError> shape_error;
  Tensor fine = zeros({3});
  int line = __LINE__ + 1;
  CHECK(error_of<Error>([&] { nn::beam_search(0, returning(fine), {.beams = 0}); }) ==
        "beam_search: 0 beams find nothing; at " + to_string(Location{__FILE__, line}));
  CHECK_THAT(message(error, fine, {.most_tokens = 0}), contains("at most 0 tokens"));
  CHECK_THAT(message(error, fine, {.end = -1}), contains("the end is no token: -1"));
  CHECK_THAT(message(error, fine, {.length_penalty = -1}), contains("a length penalty of -1 is below 0"));
  CHECK_THAT(message(error, Tensor()), contains("undefined log-probabilities"));
  CHECK_THAT(message(error, tensor({0.0, double(NAN)})), contains("NaN as the log-probability of token 1"));
  CHECK_THAT(message(shape_error, zeros({2, 3})),
             contains("has returned (2, 3) f32; log-probabilities are (V) or (1, V)"));
  CHECK_THAT(message(shape_error, fine, {.end = 3}), contains("with a V above the end, token 3"));
  CHECK_THAT(message(std::type_identity<DTypeError>(), tensor({1, 2})), contains("has returned (2,) i32"));
}
