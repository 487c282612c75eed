#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// The row of x through an element along an axis.
std::vector<double> through(const Array& x, Index index, int axis) {
  std::vector<double> values;
  if (index.empty()) return {x.values[0]};
  for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
    index[static_cast<std::size_t>(axis)] = i;
    values.push_back(at(x, index));
  }
  return values;
}

double log_sum_exp(const std::vector<double>& values) {
  double largest = *std::max_element(values.begin(), values.end()), sum = 0;
  for (double value : values) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

void add_softmax(std::vector<Row>& rows, const Shape& shape, int axis) {
  int place = axis < 0 ? axis + shape.rank() : axis;
  std::string name = to_string(shape) + " along " + std::to_string(axis);
  // |x - max| is at most 4 and off by half a unit of that, exp by 1: 3 for the term, 3 and half a unit a term
  // for the sum, and half a unit for the quotient.
  std::int64_t length = shape.rank() == 0 ? 1 : shape[place];
  double ulps = 7 + static_cast<double>(length) / 2;
  rows.push_back({.name = "softmax" + name,
                  .run = [=](auto x) { return softmax(x[0], axis); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(x[0].shape, [&](const Index& i) {
                          return std::exp(at(x[0], i) - log_sum_exp(through(x[0], i, place)));
                        });
                      },
                  .ulps = ulps,
                  .reorders = true,
                  .attributes = {{"axis", {static_cast<double>(axis)}}}});
  rows.push_back({.name = "log_softmax" + name,
                  .run = [=](auto x) { return log_softmax(x[0], axis); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = make(x[0].shape, [&](const Index& i) {
                          return at(x[0], i) - log_sum_exp(through(x[0], i, place));
                        });
                        // Both differences, of numbers of at most 4, are rounded; the logarithm's relative
                        // error is that of the sum over the logarithm.
                        y.scales.assign(y.values.size(), 4);
                        return y;
                      },
                  .ulps = ulps / 2,
                  .reorders = true,
                  .attributes = {{"axis", {static_cast<double>(axis)}}}});
}

struct Classes {
  Shape logits, targets;
  std::vector<std::int64_t> values;
};

// The loss of each example, with the scale of log_softmax's.
Array losses_of(const Arrays& x, int axis) {
  return make(x[1].shape, [&](Index i) {
    auto target = static_cast<std::int64_t>(at(x[1], i));
    if (target == -100) return 0.0;
    i.insert(i.begin() + axis, target);
    double sum = 0;
    for (std::int64_t k = 0; k < x[0].shape[axis]; ++k) {
      Index other = i;
      other[static_cast<std::size_t>(axis)] = k;
      sum += std::exp(at(x[0], other) - at(x[0], i));
    }
    return std::log(sum);
  });
}

void add_loss(std::vector<Row>& rows, const Classes& c, LossReduction reduction) {
  auto reduced = [=](const Arrays& x) {
    Array y = losses_of(x, c.logits.rank() == 1 ? 0 : 1);
    double counted = 0, sum = 0;
    for (double target : x[1].values) counted += target != -100;
    for (double loss : y.values) sum += loss;
    if (reduction != LossReduction::none) y = {{}, {reduction == LossReduction::sum ? sum : sum / counted}};
    y.scales.assign(y.values.size(), reduction == LossReduction::sum ? 4 * counted : 4);
    return y;
  };
  rows.push_back({.name = "cross_entropy" + to_string(c.logits) + " " + std::to_string(static_cast<int>(reduction)),
                  .run = [=](auto x) { return cross_entropy(x[0], x[1], {.reduction = reduction}); },
                  .inputs = {{c.logits}, {c.targets, Fill::indices, c.values}},
                  .reference = reduced,
                  .ulps = 4 + static_cast<double>(c.logits.numel()) / 2,
                  .half_roundings = reduction == LossReduction::none ? 1 : 2,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}}}});
}

constexpr LossReduction reductions[] = {LossReduction::none, LossReduction::sum, LossReduction::mean};

void add_losses(std::vector<Row>& rows) {
  const Classes cases[] = {{{4}, {}, {2}},
                           {{3, 4}, {3}, {0, -100, 3}},
                           {{2, 3, 2}, {2, 2}, {0, 1, 2, -100}},
                           {{2, 37}, {2}, {36, 7}},
                           {{0, 3}, {0}, {}}};
  for (const Classes& c : cases)
    for (LossReduction reduction : reductions) add_loss(rows, c, reduction);
}

void add_random_losses(std::vector<Row>& rows, Random& random) {
  for (LossReduction reduction : reductions) {
    Shape logits = random_shape(random, 2, 70);
    std::vector<std::int64_t> values{0};  // the others may all be ignored
    while (std::ssize(values) < logits[0])
      values.push_back(random_size(random, 0, 9) == 0 ? -100 : random_size(random, 0, logits[1] - 1));
    add_loss(rows, {logits, {logits[0]}, values}, reduction);
  }
}

void add_dropouts(std::vector<Row>& rows) {
  for (double probability : {0.0, 0.5, 1.0})
    for (const Shape& shape : {Shape{}, Shape{2, 9}, Shape{0}})
      rows.push_back({.name = "dropout of " + std::to_string(probability) + to_string(shape),
                      .run =
                          [=](auto x) {
                            Generator generator(77);
                            return dropout(x[0], {.probability = probability, .generator = &generator});
                          },
                      .inputs = {{shape}},
                      .reference =
                          [=](const Arrays& x) {
                            Array y = x[0];
                            for (std::size_t i = 0; i < y.values.size(); ++i) {
                              bool kept = detail::philox(77, 0, i).word[0] >= probability * 0x1p32;
                              y.values[i] = kept ? y.values[i] / (1 - probability) : 0;
                            }
                            return y;
                          }});
}

void add_stop_gradient(std::vector<Row>& rows, const Shape& shape) {
  rows.push_back({.name = "stop_gradient" + to_string(shape),
                  .run = [](auto x) { return stop_gradient(x[0]); },
                  .inputs = {{shape}},
                  .reference = [](const Arrays& x) { return x[0]; },
                  .ulps = 0,
                  .dtypes = all_dtypes,
                  .differentiable = false});
}

void add_rows(std::vector<Row>& rows) {
  add_softmax(rows, {}, -1);
  add_softmax(rows, {5}, 0);
  add_softmax(rows, {3, 1}, 1);
  add_softmax(rows, {0, 3}, 1);
  add_softmax(rows, {3, 0}, 1);
  add_softmax(rows, {2, 35}, -1);
  add_softmax(rows, {2, 1100}, -1);
  for (int axis : {0, 1, 2, -3}) add_softmax(rows, {2, 3, 4}, axis);
  add_losses(rows);
  add_dropouts(rows);
  for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{3, 0}}) add_stop_gradient(rows, shape);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 4; ++trial) add_softmax(rows, random_shape(random, 2, 90), trial % 2);
  add_random_losses(rows, random);
  for (int rank : {1, 2, 3}) add_stop_gradient(rows, random_shape(random, rank));
}

}  // namespace

const RowFamily network_rows{add_rows, add_random_rows};

}  // namespace reel_test
