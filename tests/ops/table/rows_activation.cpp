#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Function1 {
  std::string name;
  std::function<Tensor(const Tensor&)> run;
  std::function<double(double)> reference;
  double ulps;
  Attributes attributes = {};
  /// Its error is relative to x, not to the result: a factor is the sum of 1 and what cancels it.
  bool relative_to_x = false;
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// Errors in ulps: half a unit for each rounding, a parameter's too, and 1 or 2 for each function of the vocabulary.
std::vector<Function1> functions() {
  auto leaky = [](double slope) {
    return Function1{"leaky_relu",
                     [=](auto& x) { return leaky_relu(x, {.slope = slope}); },
                     [=](double x) { return x > 0 ? x : slope * x; },
                     1,
                     {{"slope", {slope}}}};
  };
  auto elus = [](double alpha) {
    return Function1{"elu",
                     [=](auto& x) { return elu(x, {.alpha = alpha}); },
                     [=](double x) { return x > 0 ? x : alpha * std::expm1(x); },
                     4,
                     {{"alpha", {alpha}}}};
  };
  auto softpluses = [](double beta, double threshold) {
    // e^z has an error of |z| / 2 units and one of its own; |z| is at most 6.
    return Function1{"softplus",
                     [=](auto& x) { return softplus(x, {.beta = beta, .threshold = threshold}); },
                     [=](double x) { return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta; },
                     9,
                     {{"beta", {beta}}, {"threshold", {threshold}}}};
  };
  auto hardtanhs = [](double low, double high) {
    return Function1{"hardtanh",
                     [=](auto& x) { return hardtanh(x, {.low = low, .high = high}); },
                     [=](double x) { return std::min(std::max(x, low), high); },
                     0.5,
                     {{"low", {low}}, {"high", {high}}}};
  };
  auto celus = [](double alpha) {
    return Function1{"celu",
                     [=](auto& x) { return celu(x, {.alpha = alpha}); },
                     [=](double x) { return x > 0 ? x : alpha * std::expm1(x / alpha); },
                     // The quotient's error is multiplied by up to 2.
                     7,
                     {{"alpha", {alpha}}}};
  };
  auto shrinks = [](const std::string& op, double lambda) {
    bool soft = op == "softshrink";
    return Function1{op,
                     [=](auto& x) { return (soft ? softshrink : hardshrink)(x, {.lambda = lambda}); },
                     [=](double x) { return std::abs(x) <= lambda ? 0
                                            : soft                ? x - std::copysign(lambda, x)
                                                                  : x; },
                     0.5,
                     {{"lambda", {lambda}}}};
  };
  return {
      leaky(0.01),
      leaky(0.3),
      {"gelu",
       [](auto& x) { return gelu(x); },
       [](double x) { return x * (0.5 + 0.5 * std::erf(x / std::sqrt(2))); },
       4,
       {{"tanh", {0}}},
       true},
      {"gelu",
       [](auto& x) { return gelu(x, {.approximate = GeluApproximation::tanh}); },
       [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); },
       6,
       {{"tanh", {1}}},
       true},
      {"silu", [](auto& x) { return silu(x); }, [](double x) { return x * sigmoid_of(x); }, 4},
      elus(1),
      elus(1.7),
      {"selu", [](auto& x) { return selu(x); },
       [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }, 5},
      // A product of errors of e^x, and four more roundings.
      {"mish", [](auto& x) { return mish(x); }, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 5},
      {"hardswish", [](auto& x) { return hardswish(x); }, [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; },
       2},
      {"hardsigmoid", [](auto& x) { return hardsigmoid(x); }, [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; },
       1},
      {"logsigmoid", [](auto& x) { return logsigmoid(x); }, [](double x) { return -std::log1p(std::exp(-x)); }, 6},
      {"softsign", [](auto& x) { return softsign(x); }, [](double x) { return x / (1 + std::abs(x)); }, 1},
      celus(1),
      celus(-1.7),
      shrinks("softshrink", 0.25),
      shrinks("softshrink", 1.25),
      shrinks("hardshrink", 0.25),
      shrinks("hardshrink", 1.25),
      softpluses(1, 20),
      softpluses(3, 2),
      hardtanhs(-1, 1),
      hardtanhs(-0.5, 0.75),
  };
}

void add_functions(std::vector<Row>& rows, const Shape& shape) {
  int number = 0;
  for (const Function1& f : functions())
    rows.push_back({.name = f.name + to_string(shape) + " " + std::to_string(number++),
                    .run = [=](auto x) { return f.run(x[0]); },
                    .inputs = {{shape, Fill::nonzero}},
                    .reference =
                        [=](const Arrays& x) {
                          Array y = x[0];
                          for (double& value : y.values) value = f.reference(value);
                          if (f.relative_to_x)
                            for (double value : x[0].values) y.scales.push_back(std::abs(value));
                          return y;
                        },
                    .ulps = f.ulps,
                    .attributes = f.attributes});
}

void add_prelu(std::vector<Row>& rows, const Shape& shape, const Shape& weight) {
  rows.push_back({.name = "prelu" + to_string(shape) + to_string(weight),
                  .run = [](auto x) { return prelu(x[0], x[1]); },
                  .inputs = {{shape, Fill::nonzero}, {weight}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(shape, [&](const Index& i) {
                          double value = at(x[0], i);
                          double slope =
                              x[1].values.size() == 1 ? x[1].values[0] : x[1].values[static_cast<std::size_t>(i[1])];
                          return value > 0 ? value : slope * value;
                        });
                      }});
}

void add_glu(std::vector<Row>& rows, const Shape& shape, int axis) {
  auto place = static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis);
  Shape half = shape;
  half[static_cast<int>(place)] /= 2;
  // The sigmoid is rounded, too.
  rows.push_back({.name = "glu" + to_string(shape) + " along " + std::to_string(axis),
                  .run = [=](auto x) { return glu(x[0], axis); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(half, [&](Index i) {
                          double first = at(x[0], i);
                          i[place] += half[static_cast<int>(place)];
                          return first * sigmoid_of(at(x[0], i));
                        });
                      },
                  .ulps = 4,
                  .half_roundings = 2,
                  .attributes = {{"axis", {static_cast<double>(axis)}}}});
}

// The row of x through an element along an axis.
std::vector<double> through(const Array& x, Index index, int axis) {
  std::vector<double> values;
  if (index.empty()) return x.values;
  for (std::int64_t i = 0; i < x.shape[axis]; ++i) {
    index[static_cast<std::size_t>(axis)] = i;
    values.push_back(at(x, index));
  }
  return values;
}

// log Σ e^x over the elements with a flag.
double log_sum_exp(const Arrays& x, const Index& index, int axis) {
  Array seen = make(x[0].shape, [&](const Index& i) { return at(x[1], i) != 0 ? at(x[0], i) : -infinity; });
  std::vector<double> row = through(seen, index, axis);
  double largest = *std::max_element(row.begin(), row.end()), sum = 0;
  for (double value : row) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

// An undefined mask is none, but for these rows an operand is missing.
Tensor given(const Tensor& mask) { return expand(mask, mask.shape()); }

// The bounds are those of softmax without a mask.
void add_masked_softmax(std::vector<Row>& rows, const Shape& shape, const Shape& mask, int axis) {
  std::string name = to_string(shape) + " with mask " + to_string(mask) + " along " + std::to_string(axis);
  std::int64_t length = shape.rank() == 0 ? 1 : shape[axis];
  double ulps = 7 + static_cast<double>(length) / 2;
  Attributes attributes{{"axis", {static_cast<double>(axis)}}};
  rows.push_back({.name = "softmax" + name,
                  .run = [=](auto x) { return softmax(x[0], axis, {.mask = given(x[1])}); },
                  .inputs = {{shape}, {mask, Fill::flags}},
                  .reference =
                      [=](const Arrays& x) {
                        return make(x[0].shape, [&](const Index& i) {
                          return at(x[1], i) == 0 ? 0 : std::exp(at(x[0], i) - log_sum_exp(x, i, axis));
                        });
                      },
                  .ulps = ulps,
                  .reorders = true,
                  .attributes = attributes});
  // Differences of -∞ are no numbers, so what is masked becomes 0.
  rows.push_back({.name = "log_softmax" + name,
                  .run = [=](auto x) { return where(x[1], log_softmax(x[0], axis, {.mask = given(x[1])}), 0.0); },
                  .inputs = {{shape}, {mask, Fill::flags}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = make(x[0].shape, [&](const Index& i) {
                          return at(x[1], i) == 0 ? 0 : at(x[0], i) - log_sum_exp(x, i, axis);
                        });
                        y.scales.assign(y.values.size(), 4);
                        return y;
                      },
                  .ulps = ulps / 2,
                  .reorders = true,
                  .attributes = attributes});
}

// τ by its definition: the k largest lie above it.
double sparsemax_threshold(std::vector<double> row) {
  std::sort(row.begin(), row.end(), std::greater<>());
  double sum = 0, threshold = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    sum += row[k];
    if (1 + static_cast<double>(k + 1) * row[k] > sum) threshold = (sum - 1) / static_cast<double>(k + 1);
  }
  return threshold;
}

void add_sparsemax(std::vector<Row>& rows, const Shape& shape, int axis) {
  // Numbers of at most 4 are shifted, added up to n times, divided and subtracted.
  std::int64_t length = shape.rank() == 0 ? 1 : shape[axis];
  rows.push_back({.name = "sparsemax" + to_string(shape) + " along " + std::to_string(axis),
                  .run = [=](auto x) { return sparsemax(x[0], axis); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = make(x[0].shape, [&](const Index& i) {
                          return std::max(at(x[0], i) - sparsemax_threshold(through(x[0], i, axis)), 0.0);
                        });
                        y.scales.assign(y.values.size(), 4);
                        return y;
                      },
                  .ulps = 3 + static_cast<double>(length) / 2,
                  .reorders = true});
}

void add_rows(std::vector<Row>& rows) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{3, 7}, Shape{2, 3, 200}}) add_functions(rows, shape);
  add_prelu(rows, {}, {});
  add_prelu(rows, {5}, {1});
  add_prelu(rows, {2, 3}, {3});
  add_prelu(rows, {2, 3, 4, 2}, {3});
  add_prelu(rows, {0, 3}, {3});
  add_prelu(rows, {3, 1, 40}, {1});
  add_glu(rows, {4}, 0);
  add_glu(rows, {3, 6}, -1);
  add_glu(rows, {2, 4, 3}, 1);
  add_glu(rows, {0, 4}, 1);
  add_glu(rows, {3, 0}, 1);
  add_masked_softmax(rows, {}, {}, 0);
  add_masked_softmax(rows, {5}, {5}, 0);
  add_masked_softmax(rows, {3, 7}, {3, 7}, 1);
  add_masked_softmax(rows, {3, 7}, {7}, 1);
  add_masked_softmax(rows, {6, 5}, {6, 1}, 1);
  add_masked_softmax(rows, {3, 4, 2}, {4, 1}, 1);
  add_masked_softmax(rows, {0, 4}, {4}, 1);
  add_masked_softmax(rows, {2, 2100}, {2, 2100}, 1);
  add_sparsemax(rows, {}, 0);
  add_sparsemax(rows, {4}, 0);
  add_sparsemax(rows, {3, 1}, 1);
  add_sparsemax(rows, {3, 9}, 1);
  add_sparsemax(rows, {2, 5, 3}, 1);
  add_sparsemax(rows, {0, 3}, 1);
  add_sparsemax(rows, {3, 0}, 1);
  add_sparsemax(rows, {2, 150}, 1);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int rank : {1, 2, 3}) add_functions(rows, random_shape(random, rank, 20));
  for (int axis : {0, 1, 2}) {
    Shape shape = random_shape(random, 3, 12);
    add_prelu(rows, shape, {axis == 0 ? 1 : shape[1]});
    add_sparsemax(rows, shape, axis);
    add_masked_softmax(rows, shape, shape, axis);
    add_masked_softmax(rows, shape, {shape[1], shape[2]}, axis);
    shape[axis] *= 2;
    add_glu(rows, shape, axis);
  }
}

}  // namespace

const RowFamily activation_rows{add_rows, add_random_rows};

}  // namespace reel_test
