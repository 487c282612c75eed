#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr LossReduction reductions[] = {LossReduction::none, LossReduction::sum, LossReduction::mean};

Array reduced(Array losses, LossReduction reduction) {
  if (reduction == LossReduction::none) return losses;
  double sum = 0, scale = 0;
  for (double loss : losses.values) sum += loss;
  for (double size : losses.scales) scale += size;
  double divisor = reduction == LossReduction::sum ? 1 : static_cast<double>(losses.values.size());
  return {{}, {sum / divisor}, {scale / divisor}};
}

std::string name_of_row(const std::string& op, const Shape& shape, LossReduction reduction) {
  return op + to_string(shape) + " " + std::to_string(static_cast<int>(reduction));
}

Shape heads_of(const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 1)); }

void add_gaussian(std::vector<Row>& rows, const Shape& shape, const Shape& variance, LossReduction reduction,
                  bool full) {
  rows.push_back(
      {.name = name_of_row("gaussian_nll_loss", shape, reduction) + to_string(variance) + (full ? " full" : ""),
       .run = [=](auto x) { return gaussian_nll_loss(x[0], x[1], x[2], {.reduction = reduction, .full = full}); },
       .inputs = {{shape}, {shape}, {variance, Fill::positive}},
       .reference =
           [=](const Arrays& x) {
             Array y{shape, {}};
             for_each_index(shape, [&](const Index& i) {
               Index place = i;
               if (x[2].shape.rank() < shape.rank()) place.pop_back();
               double v = at(x[2], place), away = at(x[0], i) - at(x[1], i);
               double constant = full ? std::log(2 * std::numbers::pi) / 2 : 0;
               y.values.push_back((std::log(v) + away * away / v) / 2 + constant);
               double sizes = std::abs(at(x[0], i)) + std::abs(at(x[1], i));
               y.scales.push_back((std::abs(std::log(v)) + sizes * sizes / v) / 2 + constant);
             });
             return reduced(y, reduction);
           },
       .ulps = 6,
       .reorders = true,
       .attributes = {{"reduction", {static_cast<double>(reduction)}}, {"full", {double(full)}}}});
}

void add_multi_margin(std::vector<Row>& rows, const Shape& shape, LossReduction reduction, int p, bool weighted) {
  std::int64_t classes = shape[shape.rank() - 1], examples = shape.numel() / std::max<std::int64_t>(classes, 1);
  std::vector<std::int64_t> targets;
  for (std::int64_t n = 0; n < examples; ++n) targets.push_back((n * 5 + 2) % classes);
  constexpr double margin = 0.75;
  std::vector<Input> inputs{{shape}, {heads_of(shape), Fill::indices, targets}};
  if (weighted) inputs.push_back({{classes}, Fill::positive});
  rows.push_back(
      {.name = name_of_row("multi_margin_loss", shape, reduction) + " p " + std::to_string(p) +
               (weighted ? " weighted" : ""),
       .run =
           [=](auto x) {
             return multi_margin_loss(
                 x[0], x[1],
                 {.reduction = reduction, .p = p, .margin = margin, .weight = weighted ? needed(x[2]) : Tensor()});
           },
       .inputs = inputs,
       .reference =
           [=](const Arrays& x) {
             Array y{heads_of(shape), {}};
             for (std::size_t n = 0; n < x[1].values.size(); ++n) {
               auto target = static_cast<std::int64_t>(x[1].values[n]);
               auto row = [&](std::int64_t c) {
                 return x[0].values[n * static_cast<std::size_t>(classes) + static_cast<std::size_t>(c)];
               };
               double sum = 0, scale = 0, w = weighted ? x[2].values[static_cast<std::size_t>(target)] : 1;
               for (std::int64_t c = 0; c < classes; ++c) {
                 double sizes = margin + std::abs(row(target)) + std::abs(row(c));
                 scale += std::pow(sizes, p);
                 if (c != target) sum += std::pow(std::max(0.0, margin - row(target) + row(c)), p);
               }
               y.values.push_back(w * sum / static_cast<double>(classes));
               y.scales.push_back(w * scale / static_cast<double>(classes));
             }
             return reduced(y, reduction);
           },
       .ulps = 6,
       .reorders = true,
       .attributes = {{"reduction", {static_cast<double>(reduction)}},
                      {"p", {static_cast<double>(p)}},
                      {"margin", {margin}}}});
}

void add_multilabel_margin(std::vector<Row>& rows, const Shape& shape, LossReduction reduction) {
  std::int64_t classes = shape[shape.rank() - 1];
  std::vector<std::int64_t> targets;
  // Example n has n labels, and behind their end a number that is none.
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t n = i / classes, place = i % classes;
    targets.push_back(place == n % (classes + 1) ? -1 : (n + 2 * place) % classes);
  }
  rows.push_back({.name = name_of_row("multilabel_margin_loss", shape, reduction),
                  .run = [=](auto x) { return multilabel_margin_loss(x[0], x[1], {.reduction = reduction}); },
                  .inputs = {{shape}, {shape, Fill::indices, targets}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y{heads_of(shape), {}};
                        auto count = static_cast<std::size_t>(classes);
                        for (std::size_t first = 0; first < x[1].values.size(); first += count) {
                          std::vector<bool> is_label(count);
                          std::vector<std::size_t> labels;
                          for (std::size_t j = 0; j < count && x[1].values[first + j] >= 0; ++j) {
                            labels.push_back(static_cast<std::size_t>(x[1].values[first + j]));
                            is_label[labels.back()] = true;
                          }
                          double sum = 0, scale = 1;
                          for (std::size_t label : labels)
                            for (std::size_t c = 0; c < count; ++c) {
                              double own = x[0].values[first + label], other = x[0].values[first + c];
                              scale += 1 + std::abs(own) + std::abs(other);
                              if (!is_label[c]) sum += std::max(0.0, 1 - own + other);
                            }
                          y.values.push_back(sum / static_cast<double>(classes));
                          y.scales.push_back(scale / static_cast<double>(classes));
                        }
                        return reduced(y, reduction);
                      },
                  .ulps = 6,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}}}});
}

void add_multilabel_soft(std::vector<Row>& rows, const Shape& shape, LossReduction reduction, bool weighted) {
  std::int64_t classes = shape[shape.rank() - 1];
  std::vector<Input> inputs{{shape}, {shape, Fill::positive}};
  if (weighted) inputs.push_back({{classes}, Fill::positive});
  rows.push_back({.name = name_of_row("multilabel_soft_margin_loss", shape, reduction) + (weighted ? " weighted" : ""),
                  .run =
                      [=](auto x) {
                        return multilabel_soft_margin_loss(
                            x[0], x[1], {.reduction = reduction, .weight = weighted ? needed(x[2]) : Tensor()});
                      },
                  .inputs = inputs,
                  .reference =
                      [=](const Arrays& x) {
                        Array y = make(heads_of(shape), [](const Index&) { return 0.0; });
                        y.scales.assign(y.values.size(), 0);
                        std::size_t i = 0;
                        for_each_index(shape, [&](const Index& index) {
                          double z = at(x[0], index), t = at(x[1], index), w = weighted ? at(x[2], {index.back()}) : 1;
                          double high = std::log1p(std::exp(-z)), low = std::log1p(std::exp(z));
                          std::size_t n = i++ / static_cast<std::size_t>(classes);
                          y.values[n] += w * (t * high + (1 - t) * low) / static_cast<double>(classes);
                          y.scales[n] += w * (t * high + std::abs(1 - t) * low) / static_cast<double>(classes);
                        });
                        return reduced(y, reduction);
                      },
                  .ulps = 8,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}}}});
}

void add_rows(std::vector<Row>& rows) {
  for (LossReduction reduction : reductions) {
    add_gaussian(rows, {3, 4}, {3, 4}, reduction, false);
    add_gaussian(rows, {3, 4}, {3, 1}, reduction, true);
    add_gaussian(rows, {2, 2, 3}, {2, 2}, reduction, false);
    for (int p : {1, 2}) add_multi_margin(rows, {4, 5}, reduction, p, p == 2);
    add_multi_margin(rows, {3}, reduction, 1, true);
    add_multilabel_margin(rows, {5, 3}, reduction);
    add_multilabel_margin(rows, {4}, reduction);
    add_multilabel_soft(rows, {3, 4}, reduction, false);
    add_multilabel_soft(rows, {2, 2, 3}, reduction, true);
  }
  add_gaussian(rows, {}, {}, LossReduction::mean, false);
  add_gaussian(rows, {0, 2}, {0, 1}, LossReduction::sum, false);
  add_multi_margin(rows, {0, 3}, LossReduction::sum, 1, false);
  add_multilabel_margin(rows, {0, 3}, LossReduction::sum);
  add_multilabel_soft(rows, {0, 3}, LossReduction::sum, false);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (LossReduction reduction : reductions) {
    Shape shape = random_shape(random, 2, 12);
    add_gaussian(rows, shape, shape, reduction, reduction == LossReduction::sum);
    add_multi_margin(rows, shape, reduction, reduction == LossReduction::sum ? 2 : 1, false);
    add_multilabel_margin(rows, shape, reduction);
    add_multilabel_soft(rows, shape, reduction, false);
  }
}

}  // namespace

const RowFamily label_loss_rows{add_rows, add_random_rows};

}  // namespace reel_test
