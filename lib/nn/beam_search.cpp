#include <reel/nn/beam_search.h>

#include <cmath>

#include <reel/no_record.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::detail {

namespace {

constexpr const char* beam_search_name = "beam_search";

// The log-probabilities of all tokens as a step has returned them.
std::vector<double> numbers_of(const Tensor& next, const nn::BeamSearchOptions& options, Location where) {
  if (!next.defined()) fail<Error>(beam_search_name, where, "a step has returned undefined log-probabilities");
  if (!is_floating(next.dtype()))
    fail<DTypeError>(beam_search_name, where, "a step has returned {}; log-probabilities are floating", describe(next));
  bool is_row = next.rank() == 1 || (next.rank() == 2 && next.size(0) == 1);
  if (!is_row || next.size(-1) <= options.end)
    fail<ShapeError>(beam_search_name, where,
                     "a step has returned {}; log-probabilities are (V) or (1, V) with a V above the end, token {}",
                     describe(next), options.end);
  NoRecord pause;
  return to_if_needed(to_if_needed(flatten(next), DType::f64), cpu).to_vector<double>();
}

}  // namespace

void check_beam_search(const nn::BeamSearchOptions& options, Location where) {
  if (options.beams < 1) fail<Error>(beam_search_name, where, "{} beams find nothing", options.beams);
  if (options.most_tokens < 1)
    fail<Error>(beam_search_name, where, "at most {} tokens make no sequence", options.most_tokens);
  if (options.end < 0) fail<Error>(beam_search_name, where, "the end is no token: {}", options.end);
  if (!(options.length_penalty >= 0))
    fail<Error>(beam_search_name, where, "a length penalty of {} is below 0", options.length_penalty);
}

std::vector<Continuation> best_continuations(std::span<const Tensor> next, std::span<const double> so_far,
                                             const nn::BeamSearchOptions& options, Location where) {
  std::vector<Continuation> all;
  for (std::size_t beam = 0; beam < next.size(); ++beam) {
    std::vector<double> numbers = numbers_of(next[beam], options, where);
    for (std::size_t token = 0; token < numbers.size(); ++token) {
      if (std::isnan(numbers[token]))
        fail<Error>(beam_search_name, where, "a step has returned NaN as the log-probability of token {}", token);
      if (numbers[token] > -HUGE_VAL)
        all.push_back({beam, static_cast<std::int64_t>(token), so_far[beam] + numbers[token]});
    }
  }
  // Equals in the order of beams and tokens, so that a search can be repeated.
  auto better = [](const Continuation& a, const Continuation& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  std::size_t wanted = std::min(all.size(), 2 * static_cast<std::size_t>(options.beams));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(), better);
  all.resize(wanted);
  return all;
}

double score_of(double log_probability, std::size_t tokens, const nn::BeamSearchOptions& options) {
  if (options.length_penalty == 0) return log_probability;
  return log_probability / std::pow((5 + static_cast<double>(tokens)) / 6, options.length_penalty);
}

}  // namespace reel::detail
