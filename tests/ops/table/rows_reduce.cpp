#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

using Axes = std::vector<int>;

// Axes as positions, all of them if none are named.
std::vector<bool> reduced_axes(const Shape& shape, const Axes& axes) {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (int axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keepdims) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)])
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

// Collects the elements of each result, and reduces them.
Array reduce(const Array& x, const Axes& axes, bool keepdims,
             const std::function<double(const std::vector<double>&)>& f,
             const std::function<double(const std::vector<double>&)>& scale) {
  std::vector<bool> reduced = reduced_axes(x.shape, axes);
  Array result{reduced_shape(x.shape, reduced, keepdims), {}};
  Shape kept = reduced_shape(x.shape, reduced, true), gone = x.shape;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (!reduced[static_cast<std::size_t>(i)]) gone[i] = 1;
  for_each_index(kept, [&](const Index& outer) {
    std::vector<double> terms;
    for_each_index(gone, [&](Index inner) {
      for (std::size_t i = 0; i < inner.size(); ++i) inner[i] += outer[i];
      terms.push_back(at(x, inner));
    });
    result.values.push_back(f(terms));
    result.scales.push_back(scale(terms));
  });
  return result;
}

double total(const std::vector<double>& terms) {
  double sum = 0;
  for (double term : terms) sum += term;
  return sum;
}
double total_size(const std::vector<double>& terms) {
  double sum = 0;
  for (double term : terms) sum += std::abs(term);
  return sum;
}

double largest(const std::vector<double>& terms) { return *std::max_element(terms.begin(), terms.end()); }
double smallest(const std::vector<double>& terms) { return *std::min_element(terms.begin(), terms.end()); }
double place_of_largest(const std::vector<double>& terms) {
  return static_cast<double>(std::max_element(terms.begin(), terms.end()) - terms.begin());
}
double place_of_smallest(const std::vector<double>& terms) {
  return static_cast<double>(std::min_element(terms.begin(), terms.end()) - terms.begin());
}
double product(const std::vector<double>& terms) {
  double result = 1;
  for (double term : terms) result *= term;
  return result;
}
double product_size(const std::vector<double>& terms) { return std::abs(product(terms)); }
double nonzero(const std::vector<double>& terms) {
  return static_cast<double>(terms.size()) - static_cast<double>(std::count(terms.begin(), terms.end(), 0.0));
}
double is_any(const std::vector<double>& terms) { return nonzero(terms) > 0 ? 1 : 0; }
double is_all(const std::vector<double>& terms) { return nonzero(terms) == static_cast<double>(terms.size()) ? 1 : 0; }
double average(const std::vector<double>& terms) { return total(terms) / static_cast<double>(terms.size()); }
double average_size(const std::vector<double>& terms) { return total_size(terms) / static_cast<double>(terms.size()); }
double middle(std::vector<double> terms) {
  std::sort(terms.begin(), terms.end());
  std::size_t half = terms.size() / 2;
  return terms.size() % 2 == 1 ? terms[half] : (terms[half - 1] + terms[half]) / 2;
}
double variance(const std::vector<double>& terms, double correction) {
  double centre = average(terms), squares = 0;
  for (double term : terms) squares += (term - centre) * (term - centre);
  return squares / std::max(static_cast<double>(terms.size()) - correction, 0.0);
}
double log_sum_exp(const std::vector<double>& terms) {
  double sum = 0;
  for (double term : terms) sum += std::exp(term);
  return std::log(sum);
}
double log_sum_exp_size(const std::vector<double>& terms) { return std::max(1.0, std::abs(log_sum_exp(terms))); }
double norm_of(const std::vector<double>& terms, double p) {
  if (p == 0) return nonzero(terms);
  std::vector<double> sizes;
  for (double term : terms) sizes.push_back(std::abs(term));
  if (std::isinf(p)) return p > 0 ? largest(sizes) : smallest(sizes);
  double sum = 0;
  for (double size : sizes) sum += std::pow(size, p);
  return std::pow(sum, 1 / p);
}

Shape axes_of(const Axes& axes) {
  Shape shape;
  for (int axis : axes) shape.push_back(axis);
  return shape;
}

// The axes of a reduction, all if there are none, and whether they are kept.
struct Over {
  Shape shape;
  Axes axes;
  bool keepdims = false;

  // A row for `call(x, axes or nothing, options)`.
  template <class Options, class Call, class F, class Scale>
  Row row(const std::string& op, Options options, Call call, F f, Scale scale) const {
    Over over = *this;
    options.keepdims = keepdims;
    std::string name = to_string(shape) + " over " + to_string(axes_of(axes)) + (keepdims ? " kept" : "");
    return {.name = op + name,
            .run =
                [=](std::span<const Tensor> x) {
                  return over.axes.empty() ? call(x[0], options) : call(x[0], axes_of(over.axes), options);
                },
            .inputs = {{shape}},
            .reference = [=](const Arrays& x) { return reduce(x[0], over.axes, over.keepdims, f, scale); },
            .ulps = 0,
            .attributes = attributes("", 0)};
  }
  Attributes attributes(const std::string& name, double number) const {
    return {{"axes", {axes.begin(), axes.end()}}, {"keepdims", {keepdims ? 1.0 : 0.0}}, {name, {number}}};
  }

  // Elements of x, an upper bound of those of one result.
  double count() const { return static_cast<double>(std::max<std::int64_t>(shape.numel(), 1)); }
};

void add_sums(std::vector<Row>& rows, const Over& over) {
  auto add = [&](Row row) {
    row.reorders = true;
    rows.push_back(std::move(row));
  };
  // Groups of eight are added in three steps, half a unit each, and joined without loss; up to 128 folded columns are
  // added in seven more.
  Row row = over.row(
      "sum", ReduceOptions{}, [](auto... a) { return sum(a...); }, total, total_size);
  row.ulps = 6;
  row.dtypes = all_dtypes;
  add(row);
  row = over.row(
      "mean", ReduceOptions{}, [](auto... a) { return mean(a...); }, average, average_size);
  row.ulps = 7;
  add(row);
  // Each factor rounds once, in f64; so does the reference.
  row = over.row(
      "prod", ReduceOptions{}, [](auto... a) { return prod(a...); }, product, product_size);
  row.inputs[0].fill = Fill::nonzero;
  row.ulps = over.count();
  add(row);
}

void add_choices(std::vector<Row>& rows, const Over& over) {
  auto add = [&](Row row) {
    row.inputs[0].fill = Fill::spread;
    row.dtypes = all_dtypes;
    rows.push_back(std::move(row));
  };
  auto constant = [](Row row) {
    row.differentiable = false;
    return row;
  };
  ReduceOptions options;
  add(constant(over.row(
      "any", options, [](auto... a) { return any(a...); }, is_any, is_any)));
  add(constant(over.row(
      "all", options, [](auto... a) { return all(a...); }, is_all, is_all)));
  add(constant(over.row(
      "count_nonzero", options, [](auto... a) { return count_nonzero(a...); }, nonzero, nonzero)));
  if (over.shape.numel() == 0) return;
  add(over.row(
      "max", options, [](auto... a) { return max(a...); }, largest, total_size));
  add(over.row(
      "min", options, [](auto... a) { return min(a...); }, smallest, total_size));
  Row row = over.row(
      "median", options, [](auto... a) { return median(a...); }, middle,
      [](const auto& terms) { return std::abs(middle(terms)); });
  row.ulps = 0.5;
  row.inputs[0].fill = Fill::spread;
  row.dtypes = all_dtypes;
  rows.push_back(row);
  if (over.axes.size() > 1) return;
  auto place = [&](const std::string& op, auto all, auto one, auto f) {
    Row made = over.row(
        op, options,
        [=](const Tensor& x, auto... a) {
          if constexpr (sizeof...(a) == 1)
            return all(x, a...);
          else
            return [&](const Shape& axes, ReduceOptions o) { return one(x, static_cast<int>(axes[0]), o); }(a...);
        },
        f, f);
    add(constant(made));
  };
  place(
      "argmax", [](auto... a) { return argmax(a...); }, [](auto... a) { return argmax(a...); }, place_of_largest);
  place(
      "argmin", [](auto... a) { return argmin(a...); }, [](auto... a) { return argmin(a...); }, place_of_smallest);
}

void add_spreads(std::vector<Row>& rows, const Over& over, double correction) {
  auto f = [=](const std::vector<double>& terms) { return variance(terms, correction); };
  auto root = [=](const std::vector<double>& terms) { return std::sqrt(variance(terms, correction)); };
  VarianceOptions options{.correction = correction};
  for (bool squared : {true, false}) {
    Row row = squared ? over.row(
                            "var", options, [](auto... a) { return var(a...); }, f, f)
                      : over.row(
                            "std", options, [](auto... a) { return reel::std(a...); }, root, root);
    row.name += " corrected by " + std::to_string(correction);
    row.attributes = over.attributes("correction", correction);
    row.reorders = true;
    // A mean that is off by n/2 units of the largest element, twice that in the deviations, and n squares: in f64.
    row.ulps = 4 * over.count() + 4;
    if (!squared && over.shape.numel() == 1) continue;  // a kink
    rows.push_back(std::move(row));
  }
}

void add_norms(std::vector<Row>& rows, const Over& over) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (double p : {2.0, 1.0, 0.0, infinity, -infinity, 3.0, 0.5, -1.0}) {
    if (over.shape.numel() == 0 && (p < 0 || std::isinf(p))) continue;
    auto f = [=](const std::vector<double>& terms) { return norm_of(terms, p); };
    Row row = over.row(
        "norm", NormOptions{.p = p}, [](auto... a) { return norm(a...); }, f, f);
    row.name += " p = " + std::to_string(p);
    row.inputs[0].fill = Fill::nonzero;
    row.attributes = over.attributes("p", p);
    row.reorders = true;
    // n powers of a few units each and their sum, and twice that for a root that squares; f64 but for one rounding.
    row.ulps = 2 * over.count() + 16;
    rows.push_back(std::move(row));
  }
  // A difference of up to 4 is rounded by 2 units of 1, the power has 2 of its own, the sum 2, and the result half a
  // unit.
  Row row = over.row(
      "logsumexp", ReduceOptions{}, [](auto... a) { return logsumexp(a...); }, log_sum_exp, log_sum_exp_size);
  row.ulps = 7;
  row.reorders = true;
  rows.push_back(std::move(row));
}

void add_sum_to(std::vector<Row>& rows, const Shape& shape, const Shape& result) {
  auto summed = [=](const Array& x, bool sizes) {
    Array y = make(result, [](const Index&) { return 0.0; });
    for_each_index(shape, [&](const Index& index) {
      std::size_t extra = index.size() - static_cast<std::size_t>(result.rank()), place = 0;
      for (int axis = 0; axis < result.rank(); ++axis) {
        std::int64_t i = result[axis] == 1 ? 0 : index[extra + static_cast<std::size_t>(axis)];
        place = place * static_cast<std::size_t>(result[axis]) + static_cast<std::size_t>(i);
      }
      y.values[place] += sizes ? std::abs(at(x, index)) : at(x, index);
    });
    return y;
  };
  rows.push_back({.name = "sum_to" + to_string(shape) + to_string(result),
                  .run = [=](auto x) { return sum_to(x[0], result); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = summed(x[0], false);
                        y.scales = summed(x[0], true).values;
                        return y;
                      },
                  // The bound of sum.
                  .ulps = 3,
                  .reorders = true,
                  .attributes = {{"shape", {result.begin(), result.end()}}}});
}

void add_reductions(std::vector<Row>& rows, const Shape& shape, const Axes& axes, bool keepdims) {
  Over over{shape, axes, keepdims};
  add_sums(rows, over);
  add_choices(rows, over);
  add_spreads(rows, over, 0);
  add_norms(rows, over);
}

// Calls step(so far, element) along the axis.
Array scanned(const Array& x, int axis, double initial, const std::function<double(double, double)>& step) {
  std::size_t on = static_cast<std::size_t>(axis < 0 ? axis + x.shape.rank() : axis);
  return make(x.shape, [&](const Index& index) {
    double state = initial;
    for (Index at_index = index; at_index[on] >= 0; --at_index[on]) state = step(state, at(x, at_index));
    return state;
  });
}

double sum_of_logarithms(double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); }

void add_logcumsumexp(std::vector<Row>& rows, const Shape& shape, int axis) {
  rows.push_back({.name = "logcumsumexp" + to_string(shape) + " along " + std::to_string(axis),
                  .run = [=](std::span<const Tensor> x) { return logcumsumexp(x[0], axis); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        Array y = scanned(x[0], axis, -HUGE_VAL, [](double a, double b) {
                          return a == -HUGE_VAL ? b : sum_of_logarithms(a, b);
                        });
                        // The first terms are rounded by themselves, and none is larger than 2.
                        y.scales = make(shape, [&](const Index& i) { return std::abs(at(y, i)) + 2; }).values;
                        return y;
                      },
                  // A logarithm, an exponential and two sums a term.
                  .ulps = 3.0 * static_cast<double>(std::max<std::int64_t>(shape.numel(), 1)),
                  .dtypes = {f32, f64, bf16, f16, i32},
                  .attributes = {{"axis", {static_cast<double>(axis)}}}});
}

constexpr int flattened = -100;

void add_scans(std::vector<Row>& rows, const Shape& shape, int axis) {
  bool flat = axis == flattened;
  auto input = [=](const Arrays& x) { return flat ? Array{{x[0].shape.numel()}, x[0].values} : x[0]; };
  std::string name = to_string(shape) + (flat ? " flattened" : " along " + std::to_string(axis));
  Row row{.name = "cumsum" + name,
          .run = [=](std::span<const Tensor> x) { return flat ? cumsum(x[0]) : cumsum(x[0], axis); },
          .inputs = {{shape}},
          .reference =
              [=](const Arrays& x) {
                Array y = scanned(input(x), flat ? 0 : axis, 0, [](double a, double b) { return a + b; });
                y.scales =
                    scanned(input(x), flat ? 0 : axis, 0, [](double a, double b) { return a + std::abs(b); }).values;
                return y;
              },
          // One rounding a term.
          .ulps = static_cast<double>(std::max<std::int64_t>(shape.numel(), 1)),
          .dtypes = all_dtypes};
  if (!flat) row.attributes = {{"axis", {static_cast<double>(axis)}}};
  rows.push_back(row);
  row.name = "cumprod" + name;
  row.run = [=](std::span<const Tensor> x) { return flat ? cumprod(x[0]) : cumprod(x[0], axis); };
  row.inputs[0].fill = Fill::nonzero;
  row.reference = [=](const Arrays& x) {
    return scanned(input(x), flat ? 0 : axis, 1, [](double a, double b) { return a * b; });
  };
  row.dtypes = {f32, f64, bf16};
  rows.push_back(row);
}

void add_rows(std::vector<Row>& rows) {
  add_sum_to(rows, {}, {});
  add_sum_to(rows, {3, 4}, {4});
  add_sum_to(rows, {2, 3, 4}, {3, 1});
  add_sum_to(rows, {2, 37}, {1, 1});
  add_sum_to(rows, {0, 3}, {1, 3});
  for (bool keepdims : {false, true}) {
    for (const Axes& axes : {Axes{}, {0}, {1}, {2}, {-1}, {0, 2}, {0, 1}, {1, 2}, {2, 0, 1}})
      add_reductions(rows, {2, 3, 4}, axes, keepdims);
    add_reductions(rows, {}, {}, keepdims);
    for (const Axes& axes : {Axes{}, {0}, {1}}) add_reductions(rows, {3, 0}, axes, keepdims);
    add_reductions(rows, {3, 1, 2}, {1}, keepdims);
  }
  for (const Axes& axes : {Axes{0}, {1, 3}, {0, 2, 4, 6}}) add_reductions(rows, {2, 1, 2, 1, 2, 1, 2, 2}, axes, false);
  for (const Axes& axes : {Axes{}, {0}, {1, 2}}) add_spreads(rows, {{2, 3, 4}, axes}, 1);
  // Larger than a vector; folded columns; a short axis between long ones; more columns than are in hand at once; a part
  // of rows; several tiles of a row.
  for (const Over& over : {Over{{9, 33}, {}}, Over{{9, 33}, {0}}, Over{{9, 33}, {1}}, Over{{70, 4}, {0}},
                           Over{{70, 140}, {0}}, Over{{70, 140}, {1}}, Over{{3, 40, 5}, {1}}, Over{{600, 4}, {1}},
                           Over{{3, 520}, {0}}, Over{{5, 30, 3}, {0, 2}}, Over{{5000}, {}}}) {
    std::vector<Row> large;
    add_sums(large, over);
    std::erase_if(large, [](const Row& row) { return row.name.starts_with("prod"); });
    add_choices(large, over);
    add_spreads(large, over, 0);
    Row row = over.row(
        "logsumexp", ReduceOptions{}, [](auto... a) { return logsumexp(a...); }, log_sum_exp, log_sum_exp_size);
    row.ulps = 7;
    row.reorders = true;
    large.push_back(row);
    std::move(large.begin(), large.end(), std::back_inserter(rows));
  }
  for (int axis : {0, 1, 2, -1, flattened}) add_scans(rows, {2, 3, 4}, axis);
  for (int axis : {0, 1}) add_scans(rows, {3, 0}, axis);
  for (int axis : {0, 1, -1}) add_logcumsumexp(rows, {2, 3, 4}, axis);
  for (int axis : {0, 1}) add_logcumsumexp(rows, {3, 0}, axis);
  add_logcumsumexp(rows, {1, 1}, 0);
  add_logcumsumexp(rows, {70, 3}, 0);
  add_scans(rows, {}, flattened);
  add_scans(rows, {1, 1}, 0);
  add_scans(rows, {4, 70}, 0);
  add_scans(rows, {70, 4}, 1);
  add_scans(rows, {3, 70}, 1);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    Shape shape = random_shape(random, 3), result = shape;
    result[trial] = 1;
    add_sum_to(rows, shape, result);
  }
  for (const Axes& axes : {Axes{}, {0}, {1}, {-1}, {0, 2}}) {
    add_reductions(rows, random_shape(random, 3, 20), axes, random() % 2 == 0);
    add_spreads(rows, {{2, random_size(random, 2), 3}, axes}, 1);
  }
  for (int axis : {0, 1, -1}) add_scans(rows, random_shape(random, 3, 20), axis);
  for (int axis : {0, 1, -1}) add_logcumsumexp(rows, random_shape(random, 3, 20), axis);
}

}  // namespace

const RowFamily reduce_rows{add_rows, add_random_rows};

}  // namespace reel_test
