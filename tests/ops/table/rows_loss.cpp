#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr LossReduction reductions[] = {LossReduction::none, LossReduction::sum, LossReduction::mean};

std::string reduction_name(LossReduction reduction) { return fmt::format(" {}", static_cast<int>(reduction)); }

// Losses with their scales brought together; the mean divides by `count`.
Array brought_together(Array losses, LossReduction reduction, double count) {
  if (reduction == LossReduction::none) return losses;
  double sum = 0, scale = 0;
  for (std::size_t i = 0; i < losses.values.size(); ++i) {
    sum += losses.values[i];
    scale += losses.scales[i];
  }
  double divisor = reduction == LossReduction::sum ? 1 : count;
  return {{}, {sum / divisor}, {scale / divisor}};
}

// A loss of single elements: its value, and the scale of its error.
struct Pointwise {
  std::string name;
  std::function<Tensor(const Tensor& x, const Tensor& t, LossReduction)> run;
  std::function<double(double x, double t)> loss, scale;
  Fill input = Fill::any, target = Fill::any;
  // The peer's options.
  double width = 0;
  bool logarithms = false, full = false;
};

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double huber(double difference, double delta) {
  double size = std::abs(difference);
  return size <= delta ? size * size / 2 : delta * (size - delta / 2);
}

double stirling(double t) { return t > 1 ? t * std::log(t) - t + std::log(2 * std::numbers::pi * t) / 2 : 0; }

std::vector<Pointwise> regression_losses() {
  auto sizes = [](double x, double t) { return std::abs(x) + std::abs(t); };
  auto squares = [=](double x, double t) { return sizes(x, t) * sizes(x, t); };
  std::vector<Pointwise> all{
      {"mse_loss", [](auto& x, auto& t, auto r) { return mse_loss(x, t, {.reduction = r}); },
       [](double x, double t) { return (x - t) * (x - t); }, squares},
      {"l1_loss", [](auto& x, auto& t, auto r) { return l1_loss(x, t, {.reduction = r}); },
       [](double x, double t) { return std::abs(x - t); }, sizes},
      {"smooth_l1_loss of 0",
       [](auto& x, auto& t, auto r) { return smooth_l1_loss(x, t, {.reduction = r, .beta = 0}); },
       [](double x, double t) { return std::abs(x - t); }, sizes},
  };
  for (double width : {0.5, 1.0, 1.75}) {
    std::string of = " of " + std::to_string(width);
    all.push_back({"huber_loss" + of,
                   [=](auto& x, auto& t, auto r) { return huber_loss(x, t, {.reduction = r, .delta = width}); },
                   [=](double x, double t) { return huber(x - t, width); }, squares, Fill::any, Fill::any, width});
    all.push_back({"smooth_l1_loss" + of,
                   [=](auto& x, auto& t, auto r) { return smooth_l1_loss(x, t, {.reduction = r, .beta = width}); },
                   [=](double x, double t) { return huber(x - t, width) / width; },
                   [=](double x, double t) { return squares(x, t) / width; }, Fill::any, Fill::any, width});
  }
  for (bool log_input : {false, true})
    for (bool full : {false, true})
      all.push_back({"poisson_nll_loss " + std::to_string(log_input) + std::to_string(full),
                     [=](auto& x, auto& t, auto r) {
                       return poisson_nll_loss(x, t, {.reduction = r, .log_input = log_input, .full = full});
                     },
                     [=](double x, double t) {
                       double loss = log_input ? std::exp(x) - t * x : x - t * std::log(x + 1e-8);
                       return full ? loss + stirling(t) : loss;
                     },
                     // The largest terms are e^2 and 2 · 2.
                     [](double, double) { return 12; }, log_input ? Fill::any : Fill::positive, Fill::positive, 0,
                     log_input, full});
  return all;
}

std::vector<Pointwise> binary_losses() {
  std::vector<Pointwise> all{
      // Probabilities from 0.075 to 0.5, exact in every dtype, and their complements.
      {"binary_cross_entropy",
       [](auto& x, auto& t, auto r) { return binary_cross_entropy(x * 0.25, t * 0.5, {.reduction = r}); },
       [](double x, double t) { return -t / 2 * std::log(x / 4) - (1 - t / 2) * std::log1p(-x / 4); },
       [](double x, double t) {
         return std::abs(t / 2 * std::log(x / 4)) + std::abs((1 - t / 2) * std::log1p(-x / 4));
       },
       Fill::positive, Fill::positive},
      {"binary_cross_entropy_with_logits",
       [](auto& x, auto& t, auto r) { return binary_cross_entropy_with_logits(x, t, {.reduction = r}); },
       [](double x, double t) { return (1 - t) * x + softplus(-x); },
       [](double x, double t) { return (1 + std::abs(t)) * std::abs(x) + softplus(-x); }, Fill::any, Fill::any},
  };
  for (bool log_target : {false, true})
    all.push_back({"kl_div " + std::to_string(log_target),
                   [=](auto& x, auto& t, auto r) {
                     return kl_div(x, t, {.reduction = static_cast<DivergenceReduction>(r), .log_target = log_target});
                   },
                   [=](double x, double t) { return log_target ? std::exp(t) * (t - x) : t * (std::log(t) - x); },
                   [=](double x, double t) {
                     return (log_target ? std::exp(t) : t) * (std::abs(log_target ? t : std::log(t)) + std::abs(x));
                   },
                   Fill::any, log_target ? Fill::any : Fill::positive, 0, log_target});
  return all;
}

std::vector<Pointwise> hinge_losses() {
  std::vector<Pointwise> all;
  for (double margin : {1.0, 0.25})
    all.push_back({"hinge_loss with " + std::to_string(margin),
                   [=](auto& x, auto& t, auto r) { return hinge_loss(x, t, {.reduction = r, .margin = margin}); },
                   [=](double x, double t) { return std::max(0.0, margin - t * x); },
                   [=](double x, double t) { return margin + std::abs(t * x); }, Fill::any, Fill::nonzero, margin});
  return all;
}

std::vector<Pointwise> pointwise_losses() {
  std::vector<Pointwise> all;
  for (auto family : {regression_losses, binary_losses, hinge_losses})
    for (Pointwise& loss : family()) all.push_back(std::move(loss));
  return all;
}

void add_pointwise(std::vector<Row>& rows, const Pointwise& p, const Shape& shape, LossReduction reduction) {
  rows.push_back({.name = p.name + to_string(shape) + reduction_name(reduction),
                  .run = [=](auto x) { return p.run(x[0], x[1], reduction); },
                  .inputs = {{shape, p.input}, {shape, p.target}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y{x[0].shape, {}};
                        for (std::size_t i = 0; i < x[0].values.size(); ++i) {
                          y.values.push_back(p.loss(x[0].values[i], x[1].values[i]));
                          y.scales.push_back(p.scale(x[0].values[i], x[1].values[i]));
                        }
                        return brought_together(y, reduction, static_cast<double>(shape.numel()));
                      },
                  // A handful of roundings, and a function that is off by 2.
                  .ulps = 6,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}},
                                 {"width", {p.width}},
                                 {"logarithms", {double(p.logarithms)}},
                                 {"full", {double(p.full)}}}});
}

// A factor for each element, and one for the term of the target, as inputs of their own.
void add_weighted_binary(std::vector<Row>& rows, const Shape& shape, const Shape& factors) {
  auto weighted = [=](const Arrays& x, bool logits) {
    Array y{shape, {}};
    for_each_index(shape, [&](const Index& i) {
      double value = at(x[0], i), t = at(x[1], i), w = at(x[2], i);
      double own = logits ? value : value / 4;
      double high = logits ? at(x[3], i) * softplus(-own) : -std::log(own);
      double low = logits ? own + softplus(-own) : -std::log1p(-own);
      y.values.push_back(w * (t * high + (1 - t) * low));
      y.scales.push_back(w * (1 + std::abs(t)) * 12);
    });
    return brought_together(y, LossReduction::mean, static_cast<double>(shape.numel()));
  };
  rows.push_back({.name = "binary_cross_entropy weighted" + to_string(shape),
                  .run = [](auto x) { return binary_cross_entropy(x[0] * 0.25, x[1], {.weight = needed(x[2])}); },
                  .inputs = {{shape, Fill::positive}, {shape, Fill::unit}, {factors, Fill::positive}},
                  .reference = [=](const Arrays& x) { return weighted(x, false); },
                  .ulps = 6,
                  .reorders = true});
  rows.push_back({.name = "binary_cross_entropy_with_logits weighted" + to_string(shape),
                  .run =
                      [](auto x) {
                        return binary_cross_entropy_with_logits(x[0], x[1],
                                                                {.weight = needed(x[2]), .pos_weight = needed(x[3])});
                      },
                  .inputs = {{shape}, {shape, Fill::unit}, {factors, Fill::positive}, {factors, Fill::positive}},
                  .reference = [=](const Arrays& x) { return weighted(x, true); },
                  .ulps = 6,
                  .reorders = true});
}

void add_batch_mean(std::vector<Row>& rows, const Shape& shape) {
  rows.push_back({.name = "kl_div of a batch" + to_string(shape),
                  .run = [](auto x) { return kl_div(x[0], x[1], {.reduction = DivergenceReduction::batch_mean}); },
                  .inputs = {{shape}, {shape, Fill::positive}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y{{}, {0}, {0}};
                        for (std::size_t i = 0; i < x[0].values.size(); ++i) {
                          double value = x[0].values[i], t = x[1].values[i];
                          y.values[0] += t * (std::log(t) - value) / static_cast<double>(shape[0]);
                          y.scales[0] += t * (std::abs(std::log(t)) + std::abs(value)) / static_cast<double>(shape[0]);
                        }
                        if (shape[0] == 0) y.values[0] = y.scales[0] = NAN;
                        return y;
                      },
                  .ulps = 6,
                  .reorders = true,
                  .attributes = {{"reduction", {3}}, {"logarithms", {0}}}});
}

// Alternately 1 and −1.
std::vector<std::int64_t> signs(std::int64_t count) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % 3 == 1 ? -1 : 1);
  return values;
}

void add_hinge_embedding(std::vector<Row>& rows, const Shape& shape, LossReduction reduction, double margin) {
  rows.push_back({.name = "hinge_embedding_loss" + to_string(shape) + reduction_name(reduction),
                  .run =
                      [=](auto x) {
                        return hinge_embedding_loss(x[0], to(x[1], x[0].dtype()),
                                                    {.reduction = reduction, .margin = margin});
                      },
                  .inputs = {{shape}, {shape, Fill::indices, signs(shape.numel())}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y{shape, {}};
                        for (std::size_t i = 0; i < x[0].values.size(); ++i) {
                          double value = x[0].values[i], t = x[1].values[i];
                          y.values.push_back((t != -1 ? value : 0) + (t != 1 ? std::max(0.0, margin - value) : 0));
                          y.scales.push_back(std::abs(value) + std::abs(margin));
                        }
                        return brought_together(y, reduction, static_cast<double>(shape.numel()));
                      },
                  .ulps = 3,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}}, {"margin", {margin}}}});
}

void add_cosine(std::vector<Row>& rows, const Shape& shape, LossReduction reduction, double margin) {
  Shape heads = shape.rank() == 1 ? Shape{} : Shape{shape[0]};
  std::int64_t width = shape[shape.rank() - 1];
  rows.push_back(
      {.name = "cosine_embedding_loss" + to_string(shape) + reduction_name(reduction),
       .run =
           [=](auto x) { return cosine_embedding_loss(x[0], x[1], x[2], {.reduction = reduction, .margin = margin}); },
       .inputs = {{shape, Fill::nonzero}, {shape, Fill::nonzero}, {heads, Fill::indices, signs(heads.numel())}},
       .reference =
           [=](const Arrays& x) {
             Array y{heads, {}};
             for (std::int64_t n = 0; n < heads.numel(); ++n) {
               double product = 0, left = 1e-12, right = 1e-12;
               for (std::int64_t j = 0; j < width; ++j) {
                 double a = x[0].values[static_cast<std::size_t>(n * width + j)];
                 double b = x[1].values[static_cast<std::size_t>(n * width + j)];
                 product += a * b;
                 left += a * a;
                 right += b * b;
               }
               double cosine = product / std::sqrt(left * right);
               y.values.push_back(x[2].values[static_cast<std::size_t>(n)] == 1 ? 1 - cosine
                                                                                : std::max(0.0, cosine - margin));
               y.scales.push_back(2);
             }
             return brought_together(y, reduction, static_cast<double>(heads.numel()));
           },
       // Roundings of numbers of at most 2: three sums, a root, a product, a quotient and a difference.
       .ulps = 6,
       .reorders = true,
       .attributes = {{"reduction", {static_cast<double>(reduction)}}, {"margin", {margin}}}});
}

void add_triplet(std::vector<Row>& rows, const Shape& shape, LossReduction reduction, const TripletOptions& options) {
  TripletOptions given = options;
  given.reduction = reduction;
  Shape heads;
  for (int i = 0; i + 1 < shape.rank(); ++i) heads.push_back(shape[i]);
  auto width = static_cast<std::size_t>(shape[shape.rank() - 1]);
  rows.push_back({.name = "triplet_margin_loss" + to_string(shape) + reduction_name(reduction) + " p " +
                          std::to_string(options.p) + (options.swap ? " swapped" : ""),
                  .run = [=](auto x) { return triplet_margin_loss(x[0], x[1], x[2], given); },
                  .inputs = {{shape, Fill::any}, {shape, Fill::any}, {shape, Fill::any}},
                  .reference =
                      [=](const Arrays& x) {
                        auto distance = [&](int a, int b, std::size_t n) {
                          double sum = 0;
                          for (std::size_t j = n * width; j < (n + 1) * width; ++j)
                            sum += std::pow(std::abs(x[static_cast<std::size_t>(a)].values[j] -
                                                     x[static_cast<std::size_t>(b)].values[j] + given.epsilon),
                                            given.p);
                          return std::pow(sum, 1 / given.p);
                        };
                        Array y{heads, {}};
                        for (std::size_t n = 0; n < static_cast<std::size_t>(heads.numel()); ++n) {
                          double far = distance(0, 2, n), near = distance(0, 1, n);
                          if (given.swap) far = std::min(far, distance(1, 2, n));
                          y.values.push_back(std::max(0.0, near - far + given.margin));
                          y.scales.push_back(near + far + given.margin + 4);
                        }
                        return brought_together(y, reduction, static_cast<double>(heads.numel()));
                      },
                  // Roundings of numbers of at most 4, and of their norms.
                  .ulps = 6 + static_cast<double>(width) / 2,
                  .reorders = true,
                  .attributes = {{"reduction", {static_cast<double>(reduction)}},
                                 {"margin", {given.margin}},
                                 {"p", {given.p}},
                                 {"swap", {double(given.swap)}}}});
}

// A classification: class indices or, if there are none, probabilities in the logits' shape.
struct Classes {
  Shape logits, targets;
  std::vector<std::int64_t> values = {};
  bool soft = false;
};

struct ClassLoss {
  Classes classes;
  LossReduction reduction;
  double smoothing = 0;
  std::int64_t ignored = -100;
  bool weighted = false, of_logits = true;
  std::vector<double> fixed_weights = {};  // in place of an input with a gradient
};

double log_probability(const Arrays& x, const ClassLoss& loss, Index at_class, std::size_t axis) {
  double own = at(x[0], at_class), sum = 0;
  if (!loss.of_logits) return own;
  for (at_class[axis] = 0; at_class[axis] < x[0].shape[static_cast<int>(axis)]; ++at_class[axis])
    sum += std::exp(at(x[0], at_class));
  return own - std::log(sum);
}

double class_weight(const Arrays& x, const ClassLoss& loss, std::int64_t c) {
  if (!loss.fixed_weights.empty()) return loss.fixed_weights[static_cast<std::size_t>(c)];
  return loss.weighted ? x[2].values[static_cast<std::size_t>(c)] : 1;
}

Array class_losses(const Arrays& x, const ClassLoss& loss) {
  std::size_t axis = x[0].shape.rank() == 1 ? 0 : 1;
  std::int64_t classes = x[0].shape[static_cast<int>(axis)];
  double divisor = 0;
  Array y{loss.classes.targets, {}};
  for_each_index(loss.classes.targets, [&](Index i) {
    auto target = loss.classes.soft ? -1 : static_cast<std::int64_t>(at(x[1], i));
    bool ignored = !loss.classes.soft && target == loss.ignored;
    i.insert(i.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    double value = 0, scale = 1;
    for (std::int64_t c = 0; c < classes && !ignored; ++c) {
      i[axis] = c;
      double share = loss.classes.soft ? at(x[1], i) : c == target;
      share = share * (1 - loss.smoothing) + loss.smoothing / static_cast<double>(classes);
      double weight = class_weight(x, loss, c);
      value -= weight * share * log_probability(x, loss, i, axis);
      scale += 8 * weight * std::abs(share);  // log C and two logits of at most 2
    }
    divisor += ignored ? 0 : loss.classes.soft ? 1 : class_weight(x, loss, target);
    y.values.push_back(value);
    y.scales.push_back(scale);
  });
  return brought_together(y, loss.reduction, divisor);
}

void add_class_loss(std::vector<Row>& rows, const ClassLoss& loss) {
  const Classes& c = loss.classes;
  // An empty mean is NaN, so its derivatives cannot be checked by differences.
  if (loss.weighted && c.logits.numel() == 0 && loss.reduction == LossReduction::mean) return;
  std::int64_t classes = c.logits[c.logits.rank() == 1 ? 0 : 1];
  std::string name = loss.of_logits ? "cross_entropy" : "nll_loss";
  std::vector<Input> inputs{{c.logits},
                            c.soft ? Input{c.logits, Fill::positive} : Input{c.targets, Fill::indices, c.values}};
  if (loss.weighted) inputs.push_back({{classes}, Fill::positive});
  rows.push_back(
      {.name = name + to_string(c.logits) + reduction_name(loss.reduction) + " smoothed by " +
               std::to_string(loss.smoothing) + (loss.weighted ? ", weighted" : "") + (c.soft ? ", soft" : ""),
       .run =
           [=](auto x) {
             Tensor weight = loss.weighted ? needed(x[2]) : Tensor();
             if (!loss.fixed_weights.empty()) weight = to(tensor(loss.fixed_weights), x[0].dtype());
             if (!loss.of_logits)
               return nll_loss(x[0], x[1],
                               {.reduction = loss.reduction, .ignore_index = loss.ignored, .weight = weight});
             return cross_entropy(x[0], x[1],
                                  {.reduction = loss.reduction,
                                   .ignore_index = loss.ignored,
                                   .weight = weight,
                                   .label_smoothing = loss.smoothing});
           },
       .inputs = inputs,
       .reference = [=](const Arrays& x) { return class_losses(x, loss); },
       // The bound of softmax.
       .ulps = 8 + static_cast<double>(classes) / 2,
       .reorders = true,
       .op = name,
       .attributes = {{"reduction", {static_cast<double>(loss.reduction)}},
                      {"ignored", {static_cast<double>(loss.ignored)}},
                      {"smoothing", {loss.smoothing}},
                      {"weights", loss.fixed_weights}}});
}

void add_class_losses(std::vector<Row>& rows) {
  const Classes cases[] = {
      {{4}, {}, {2}},          {{3, 4}, {3}, {0, -100, 3}},    {{2, 3, 2}, {2, 2}, {0, 1, 2, -100}},
      {{2, 37}, {2}, {36, 7}}, {{2, 2500}, {2}, {2499, -100}}, {{0, 3}, {0}, {}}};
  for (const Classes& c : cases)
    for (LossReduction reduction : reductions) {
      // The reference takes the square of many classes.
      if (c.logits.numel() > 1000 && reduction != LossReduction::mean) continue;
      for (bool weighted : {false, true})
        add_class_loss(rows, {.classes = c, .reduction = reduction, .weighted = weighted, .of_logits = false});
      add_class_loss(rows, {.classes = c, .reduction = reduction, .weighted = true});
      for (bool weighted : {false, true})
        add_class_loss(rows, {.classes = c, .reduction = reduction, .smoothing = 0.25, .weighted = weighted});
    }
  for (const Classes& c : {Classes{{4}, {}, {}, true}, Classes{{3, 4}, {3}, {}, true},
                           Classes{{2, 3, 2}, {2, 2}, {}, true}, Classes{{0, 3}, {0}, {}, true}})
    for (LossReduction reduction : reductions)
      for (double smoothing : {0.0, 0.25})
        add_class_loss(rows,
                       {.classes = c, .reduction = reduction, .smoothing = smoothing, .weighted = smoothing != 0});
}

std::vector<double> random_weights(Random& random, std::int64_t count) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < count; ++i) weights.push_back(static_cast<double>(random_size(random, 1, 8)) / 4);
  return weights;
}

void add_random_class_losses(std::vector<Row>& rows, Random& random, bool of_logits) {
  for (LossReduction reduction : reductions)
    for (bool weighted : {false, true}) {
      Shape logits = random_shape(random, weighted ? 2 : 3, 12);
      Shape targets = logits.rank() == 2 ? Shape{logits[0]} : Shape{logits[0], logits[2]};
      std::vector<std::int64_t> values{0};  // the others may all be ignored
      while (std::ssize(values) < targets.numel())
        values.push_back(random_size(random, 0, 9) == 0 ? -100 : random_size(random, 0, logits[1] - 1));
      std::vector<double> weights = weighted ? random_weights(random, logits[1]) : std::vector<double>();
      double smoothing = of_logits && random_size(random, 0, 1) ? 0.125 : 0;
      ClassLoss loss{{logits, targets, values}, reduction, smoothing};
      loss.of_logits = of_logits;
      loss.fixed_weights = weights;
      add_class_loss(rows, loss);
      loss.classes = {logits, targets, {}, true};
      if (of_logits) add_class_loss(rows, loss);
    }
}

void add_rows(std::vector<Row>& rows) {
  for (const Pointwise& loss : pointwise_losses()) {
    for (LossReduction reduction : reductions) add_pointwise(rows, loss, {3, 4}, reduction);
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{1, 1}, Shape{2, 37}})
      add_pointwise(rows, loss, shape, LossReduction::mean);
  }
  add_weighted_binary(rows, {3, 4}, {3, 4});
  add_weighted_binary(rows, {2, 3, 2}, {2});
  for (const Shape& shape : {Shape{4}, Shape{3, 5}, Shape{0, 2}}) add_batch_mean(rows, shape);
  for (LossReduction reduction : reductions) {
    for (const Shape& shape : {Shape{5}, Shape{2, 9}}) add_hinge_embedding(rows, shape, reduction, 0.75);
    for (const Shape& shape : {Shape{5}, Shape{4, 3}, Shape{3, 1}}) add_cosine(rows, shape, reduction, 0.125);
    for (const Shape& shape : {Shape{5}, Shape{4, 3}, Shape{2, 2, 3}})
      for (bool swap : {false, true}) add_triplet(rows, shape, reduction, {.margin = 1.5, .swap = swap});
    add_triplet(rows, {4, 3}, reduction, {.p = 3});
  }
  add_hinge_embedding(rows, {0}, LossReduction::sum, 1);
  add_cosine(rows, {0, 3}, LossReduction::sum, 0);
  add_triplet(rows, {0, 3}, LossReduction::sum, {});
  add_class_losses(rows);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (const Pointwise& loss : pointwise_losses())
    for (LossReduction reduction : reductions) add_pointwise(rows, loss, random_shape(random, 2), reduction);
  for (int rank : {1, 2, 3}) add_batch_mean(rows, random_shape(random, rank));
  for (LossReduction reduction : reductions) {
    add_hinge_embedding(rows, random_shape(random, 2), reduction, 0.75);
    add_cosine(rows, random_shape(random, 2), reduction, 0.125);
    for (bool swap : {false, true}) add_triplet(rows, random_shape(random, 2, 20), reduction, {.swap = swap});
  }
  for (bool of_logits : {false, true}) add_random_class_losses(rows, random, of_logits);
}

}  // namespace

const RowFamily loss_rows{add_rows, add_random_rows};

}  // namespace reel_test
