#include <reel/nn/crf.h>

#include <algorithm>
#include <numeric>

#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../ops/recurrent/packing.h"
#include "recurrent/packed.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* crf_name = "CRF";

void check_emissions(const Packed& emissions, std::int64_t tags, Location where) {
  const Tensor& e = emissions.elements;
  if (!e.defined()) fail<Error>(crf_name, where, "the emissions are an undefined tensor");
  if (!is_floating(e.dtype())) fail<DTypeError>(crf_name, where, "emissions have to be floating, not {}", describe(e));
  if (e.rank() != 2 || e.size(1) != tags)
    fail<ShapeError>(crf_name, where, "emissions {} are not (N, {}), a score for each element and tag", describe(e),
                     tags);
  check_packed(crf_name, emissions, where);
}

// Sequences in descending order of their lengths, so that those that reach a step are the first ones.
struct ByLength {
  std::vector<std::int64_t> places;    // of each sequence in that order
  std::vector<std::int64_t> counts;    // the number of sequences that reach each step
  std::vector<std::int64_t> elements;  // indices of the elements, step by step

  explicit ByLength(const std::vector<std::int64_t>& lengths) : places(lengths.size()) {
    std::vector<std::int64_t> order(lengths.size()), first(lengths.size() + 1);
    std::iota(order.begin(), order.end(), 0);
    auto length = [&](std::int64_t b) { return lengths[static_cast<std::size_t>(b)]; };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return length(a) > length(b); });
    std::partial_sum(lengths.begin(), lengths.end(), first.begin() + 1);
    for (std::size_t i = 0; i < order.size(); ++i)
      places[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    for (std::int64_t t = 0; !order.empty() && t < length(order[0]); ++t) {
      std::int64_t reached = 0;
      for (std::int64_t b : order) {
        if (length(b) <= t) break;
        elements.push_back(first[static_cast<std::size_t>(b)] + t);
        ++reached;
      }
      counts.push_back(reached);
    }
  }
};

std::vector<std::int64_t> checked_tags(const Tensor& tags, std::int64_t count, std::int64_t tag_count, Location where) {
  if (!tags.defined()) fail<Error>(crf_name, where, "the tags are an undefined tensor");
  if (tags.dtype() != DType::i64) fail<DTypeError>(crf_name, where, "tags have to be i64, not {}", describe(tags));
  if (tags.rank() != 1 || tags.numel() != count)
    fail<ShapeError>(crf_name, where, "tags {} are not ({}), one for each element", describe(tags), count);
  std::vector<std::int64_t> values = tags.to_vector<std::int64_t>();
  for (std::int64_t tag : values)
    if (tag < 0 || tag >= tag_count) fail<IndexError>(crf_name, where, "tag {} lies outside [0, {})", tag, tag_count);
  return values;
}

// For each term of the scores besides the emissions: its index in the concatenation (transitions, start, end), and the
// sequence to which it belongs.
struct ScoreTerms {
  std::vector<std::int64_t> places, sequences;

  ScoreTerms(const std::vector<std::int64_t>& tags, const std::vector<std::int64_t>& lengths, std::int64_t tag_count) {
    const std::int64_t start = tag_count * tag_count, end = start + tag_count;
    const std::int64_t* tag = tags.data();
    for (std::size_t b = 0; b < lengths.size(); tag += lengths[b++]) {
      std::int64_t length = lengths[b];
      if (length == 0) continue;
      places.push_back(start + tag[0]);
      for (std::int64_t t = 1; t < length; ++t) places.push_back(tag[t - 1] * tag_count + tag[t]);
      places.push_back(end + tag[length - 1]);
      sequences.insert(sequences.end(), static_cast<std::size_t>(length + 1), static_cast<std::int64_t>(b));
    }
  }
};

// Viterbi's algorithm on one sequence of emissions (length, K): writes the tags and returns their score.
class Viterbi {
 public:
  Viterbi(const CRF& crf)
      : transitions_(to_if_needed(crf.transitions, f64).to_vector<double>()),
        start_(to_if_needed(crf.start, f64).to_vector<double>()),
        end_(to_if_needed(crf.end, f64).to_vector<double>()) {}

  double decode(const double* emissions, std::int64_t length, std::int64_t* tags) {
    if (length == 0) return 0;
    std::size_t count = start_.size();
    std::vector<double> best(count), next(count);
    std::vector<std::size_t> from(static_cast<std::size_t>(length) * count);
    for (std::size_t k = 0; k < count; ++k) best[k] = start_[k] + emissions[k];
    for (std::size_t t = 1; t < static_cast<std::size_t>(length); ++t) {
      for (std::size_t k = 0; k < count; ++k) {
        std::size_t found = 0;
        for (std::size_t j = 1; j < count; ++j)
          if (best[j] + transition(j, k) > best[found] + transition(found, k)) found = j;
        from[t * count + k] = found;
        next[k] = best[found] + transition(found, k) + emissions[t * count + k];
      }
      std::swap(best, next);
    }
    for (std::size_t k = 0; k < count; ++k) best[k] += end_[k];
    auto last = static_cast<std::size_t>(std::max_element(best.begin(), best.end()) - best.begin());
    double score = best[last];
    for (auto t = static_cast<std::size_t>(length); t-- > 0; last = from[t * count + last])
      tags[t] = static_cast<std::int64_t>(last);
    return score;
  }

 private:
  double transition(std::size_t j, std::size_t k) const { return transitions_[j * start_.size() + k]; }
  std::vector<double> transitions_, start_, end_;
};

Initialiser first_values(const CRFOptions& options, std::int64_t tags, Location where) {
  if (tags < 1) fail<ShapeError>(crf_name, where, "at least one tag is needed, not {}", tags);
  return options.initialiser ? options.initialiser : uniform(-0.1, 0.1);
}

RandomOptions draw(const CRFOptions& options) { return {.dtype = options.dtype, .generator = options.generator}; }

// log Z of each sequence, computed by the forward algorithm, for checked and widened emissions.
Tensor forward(const CRF& crf, const Tensor& emissions, const std::vector<std::int64_t>& lengths) {
  DeviceGuard here(emissions.device());
  Tensor transitions = widened(crf.transitions), start = widened(crf.start), end = widened(crf.end);
  ByLength order(lengths);
  auto sequence_count = static_cast<std::int64_t>(lengths.size());
  if (order.counts.empty()) {
    std::vector<Tensor> used = crf.parameters();
    used.push_back(emissions);
    return zeros({sequence_count}, {.dtype = emissions.dtype()}) + empty_sum(used, emissions.dtype());
  }
  Tensor by_step = take(emissions, tensor(order.elements), 0);  // elements of step 0, then of step 1 …
  std::vector<Tensor> ended;                                    // α at the last steps, of the shortest sequences first
  std::int64_t reached = order.counts[0], next = reached;
  Tensor alpha = start + slice(by_step, 0, 0, reached);
  for (std::size_t t = 1; t < order.counts.size(); ++t) {
    std::int64_t count = order.counts[t];
    if (count < reached) ended.push_back(slice(alpha, 0, count, reached));
    Tensor before = reshape(slice(alpha, 0, 0, count), {count, -1, 1});
    alpha = logsumexp(before + transitions, 1) + slice(by_step, 0, next, next + count);
    reached = count;
    next += count;
  }
  ended.push_back(alpha);
  std::reverse(ended.begin(), ended.end());
  Tensor partition = logsumexp(concat(ended) + end, 1);
  if (order.counts[0] < sequence_count)
    partition = concat({partition, zeros({sequence_count - order.counts[0]}, {.dtype = partition.dtype()})});
  return take(partition, tensor(order.places), 0);
}

CRFTags best_tags(const CRF& crf, const Tensor& emissions, const std::vector<std::int64_t>& lengths) {
  DeviceGuard here(crf.start.device());
  std::vector<double> scores_of_tags = to_if_needed(stop_gradient(emissions), f64).to_vector<double>();
  std::vector<std::int64_t> tags(static_cast<std::size_t>(emissions.size(0)));
  std::vector<double> scores;
  Viterbi viterbi(crf);
  const double* e = scores_of_tags.data();
  std::int64_t* best = tags.data();
  for (std::int64_t length : lengths) {
    scores.push_back(viterbi.decode(e, length, best));
    e += length * crf.start.size(0);
    best += length;
  }
  return {{tensor(tags), lengths}, to_if_needed(tensor(scores), crf.start.dtype() == f64 ? f64 : f32)};
}

}  // namespace

CRF::CRF(std::int64_t tags, CRFOptions options, Location where)
    : transitions(*this, "transitions", {tags, tags}, first_values(options, tags, where), draw(options), where),
      start(*this, "start", {tags}, first_values(options, tags, where), draw(options), where),
      end(*this, "end", {tags}, first_values(options, tags, where), draw(options), where) {}

Tensor CRF::operator()(const Packed& emissions, const Tensor& tags, Location where) const {
  std::int64_t tag_count = start.size(0);
  check_emissions(emissions, tag_count, where);
  return call(crf_name, {emissions.elements, tags}, where, [&](const Tensor& e, const Tensor& tags) {
    std::vector<std::int64_t> values = checked_tags(tags, e.size(0), tag_count, where);
    DeviceGuard here(e.device());
    ScoreTerms terms(values, emissions.lengths, tag_count);
    Tensor wide = widened(e), table = widened(concat({reshape(transitions, {-1}), start, end}));
    Tensor score = segment_sum(take(table, tensor(terms.places)), tensor(terms.sequences), emissions.size());
    Tensor emitted = reshape(gather(wide, 1, reshape(tags, {-1, 1})), {-1});
    score = score + segment_sum(emitted, emissions.sequence_of_elements(where), emissions.size());
    return score - forward(*this, wide, emissions.lengths);
  });
}

Tensor CRF::log_partition(const Packed& emissions, Location where) const {
  check_emissions(emissions, start.size(0), where);
  return call(crf_name, {emissions.elements, Tensor()}, where,
              [&](const Tensor& e, const Tensor&) { return forward(*this, widened(e), emissions.lengths); });
}

CRFTags CRF::decode(const Packed& emissions, Location where) const {
  check_emissions(emissions, start.size(0), where);
  NoRecord pause;
  return call(crf_name, {emissions.elements, Tensor()}, where,
              [&](const Tensor& e, const Tensor&) { return best_tags(*this, e, emissions.lengths); });
}

}  // namespace reel::nn
