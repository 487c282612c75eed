#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// A batch: the numbers of valid steps and labels of each example.
struct Batch {
  std::int64_t steps, classes;
  std::vector<std::int64_t> input_lengths, target_lengths, labels;  // the labels of all examples in a row
  std::int64_t blank = 0;
  LossReduction reduction = LossReduction::none;
  bool padded = false, from_logits = false, zero_infinity = false;

  std::int64_t examples() const { return std::ssize(input_lengths); }
  std::int64_t longest() const {
    return target_lengths.empty() ? 0 : *std::max_element(target_lengths.begin(), target_lengths.end());
  }
  // The labels of example n.
  std::vector<std::int64_t> target(std::size_t n) const {
    std::int64_t start = 0;
    for (std::size_t k = 0; k < n; ++k) start += target_lengths[k];
    return {labels.begin() + start, labels.begin() + start + target_lengths[n]};
  }
  Input targets() const {
    std::vector<std::int64_t> rows;
    for (std::size_t n = 0; n < target_lengths.size(); ++n) {
      std::vector<std::int64_t> row = target(n);
      row.resize(static_cast<std::size_t>(longest()), -7);  // is ignored
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return {{examples(), longest()}, Fill::indices, rows};
  }
};

// The labels of all examples, concatenated.
Tensor in_a_row(const Tensor& targets, const Tensor& lengths) {
  std::vector<Tensor> parts{zeros({0}, {.dtype = i64})};
  std::vector<std::int64_t> counts = lengths.to_vector<std::int64_t>();
  for (std::size_t n = 0; n < counts.size(); ++n)
    parts.push_back(slice(select(targets, 0, static_cast<std::int64_t>(n)), 0, 0, counts[n]));
  return concat(parts);
}

// The probability that symbols drawn step by step become the target: of each number of labels that are done, after a blank
// and after the label itself.
double probability(const std::vector<std::int64_t>& target, std::int64_t steps, std::int64_t blank,
                   const std::function<double(std::int64_t, std::int64_t)>& p) {
  std::vector<double> after_blank(target.size() + 1), after_label(target.size() + 1);
  after_blank[0] = 1;
  for (std::int64_t t = 0; t < steps; ++t) {
    std::vector<double> blanks(after_blank.size()), labels(after_blank.size());
    for (std::size_t done = 0; done <= target.size(); ++done) {
      blanks[done] = (after_blank[done] + after_label[done]) * p(t, blank);
      if (done == 0) continue;
      bool repeats = done >= 2 && target[done - 1] == target[done - 2];
      double before = after_blank[done - 1] + (repeats ? 0 : after_label[done - 1]);
      labels[done] = (after_label[done] + before) * p(t, target[done - 1]);
    }
    after_blank = blanks;
    after_label = labels;
  }
  return after_blank.back() + after_label.back();
}

Array losses_of(const Batch& batch, const Arrays& given) {
  const Array& x = given[0];
  Array y{{batch.examples()}, {}};
  for (std::size_t n = 0; n < batch.input_lengths.size(); ++n) {
    auto example = static_cast<std::int64_t>(n);
    std::vector<std::int64_t> target;
    for (std::int64_t s = 0; s < static_cast<std::int64_t>(given[3].values[n]); ++s)
      target.push_back(static_cast<std::int64_t>(at(given[1], {example, s})));
    auto steps = static_cast<std::int64_t>(given[2].values[n]);
    double found = probability(target, steps, batch.blank, [&](std::int64_t t, std::int64_t c) {
      double sum = 0;
      for (std::int64_t k = 0; k < batch.classes; ++k) sum += std::exp(at(x, {t, example, k}));
      return std::exp(at(x, {t, example, c})) / (batch.from_logits ? sum : 1);
    });
    double loss = -std::log(found);
    if (batch.zero_infinity && std::isinf(loss)) loss = 0;
    if (batch.reduction == LossReduction::mean) loss /= static_cast<double>(std::max<std::size_t>(1, target.size()));
    y.values.push_back(loss);
    // Each step adds a number of at most 4.
    y.scales.push_back(4 * static_cast<double>(steps) + 4);
  }
  if (batch.reduction == LossReduction::none) return y;
  Array total{{}, {0}, {0}};
  for (std::size_t n = 0; n < y.values.size(); ++n) {
    total.values[0] += y.values[n];
    total.scales[0] += y.scales[n];
  }
  double divisor = batch.reduction == LossReduction::mean ? static_cast<double>(y.values.size()) : 1;
  return {{}, {total.values[0] / divisor}, {total.scales[0] / divisor}};
}

void add_ctc(std::vector<Row>& rows, const Batch& batch) {
  Shape shape{batch.steps, batch.examples(), batch.classes};
  rows.push_back({.name = fmt::format("ctc_loss{} {} labels, reduction {}{}{}", to_string(shape), batch.labels.size(),
                                      static_cast<int>(batch.reduction), batch.padded ? ", padded" : "",
                                      batch.zero_infinity ? ", zero_infinity" : ""),
                  .run =
                      [=](auto x) {
                        return ctc_loss(
                            batch.from_logits ? log_softmax(x[0]) : x[0], batch.padded ? x[1] : in_a_row(x[1], x[3]),
                            x[2], x[3],
                            {.reduction = batch.reduction, .blank = batch.blank, .zero_infinity = batch.zero_infinity});
                      },
                  .inputs = {{shape},
                             batch.targets(),
                             {{batch.examples()}, Fill::indices, batch.input_lengths},
                             {{batch.examples()}, Fill::indices, batch.target_lengths}},
                  .reference = [=](const Arrays& x) { return losses_of(batch, x); },
                  // Sums of three terms, in f64; where it starts from logits, with the error of log_softmax.
                  .ulps = 4 + (batch.from_logits ? 4 + static_cast<double>(batch.classes) / 2 : 0),
                  .half_roundings = batch.from_logits ? static_cast<int>(2 * batch.steps) : 1,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(batch.reduction)}},
                                 {"blank", {static_cast<double>(batch.blank)}},
                                 {"zero_infinity", {double(batch.zero_infinity)}}}});
}

void add_rows(std::vector<Row>& rows) {
  for (LossReduction reduction : {LossReduction::none, LossReduction::sum, LossReduction::mean})
    for (bool padded : {false, true}) {
      auto add = [&](Batch batch) {
        batch.reduction = reduction;
        batch.padded = padded;
        add_ctc(rows, batch);
      };
      add({4, 3, {4}, {2}, {1, 2}});
      // A repeated label, which needs a blank between; an empty target; a label more often than once; a short input.
      add({5, 4, {5, 4, 5, 3}, {2, 0, 3, 1}, {3, 3, 1, 2, 1, 3}});
      add({5, 3, {5, 5}, {2, 1}, {0, 2, 2}, 1});
      add({3, 2, {3, 3}, {0, 0}, {}});
      // No alignment is possible for the first, and the second has one only.
      Batch tight{3, 3, {3, 3, 0}, {3, 3, 0}, {1, 1, 2, 1, 2, 1}};
      tight.zero_infinity = true;
      add(tight);
      add({2, 3, {0, 2}, {0, 1}, {2}});
    }
  Batch empty{3, 2, {}, {}, {}};
  empty.padded = true;
  add_ctc(rows, empty);
  add_ctc(rows, {0, 2, {0}, {0}, {}});
  Batch large{60, 9, {60, 55}, {20, 11}, {}};
  for (int i = 0; i < 31; ++i) large.labels.push_back(1 + i * i % 8);
  large.padded = true;
  add_ctc(rows, large);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (LossReduction reduction : {LossReduction::none, LossReduction::sum, LossReduction::mean})
    for (bool padded : {false, true}) {
      Batch batch{random_size(random, 12, 40), random_size(random, 3, 20), {}, {}, {}};
      batch.reduction = reduction;
      batch.padded = padded;
      batch.from_logits = true;
      batch.blank = random_size(random, 0, batch.classes - 1);
      for (std::int64_t n = random_size(random, 1, 5); n > 0; --n) {
        batch.input_lengths.push_back(random_size(random, 11, batch.steps));
        batch.target_lengths.push_back(random_size(random, 1, 5));
        for (std::int64_t s = 0; s < batch.target_lengths.back(); ++s) {
          std::int64_t label = random_size(random, 0, batch.classes - 2);
          batch.labels.push_back(label + (label >= batch.blank));
        }
      }
      add_ctc(rows, batch);
    }
}

}  // namespace

const RowFamily ctc_rows{add_rows, add_random_rows};

}  // namespace reel_test
