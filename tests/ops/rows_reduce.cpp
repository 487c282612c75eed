#include <algorithm>
#include <cmath>

#include "ops/table.h"

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

// Collects the elements that each result is made of, and makes it.
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

Shape axes_of(const Axes& axes) {
  Shape shape;
  for (int axis : axes) shape.push_back(axis);
  return shape;
}

void add_reductions(std::vector<Row>& rows, const Shape& shape, const Axes& axes, bool keepdims) {
  std::string name = to_string(shape) + " over " + to_string(axes_of(axes)) + (keepdims ? " kept" : "");
  auto run = [=](auto all, auto some) {
    return [=](std::span<const Tensor> x) {
      return axes.empty() ? all(x[0], ReduceOptions{.keepdims = keepdims})
                          : some(x[0], axes_of(axes), ReduceOptions{.keepdims = keepdims});
    };
  };
  Attributes attributes{{"axes", {axes.begin(), axes.end()}}, {"keepdims", {keepdims ? 1.0 : 0.0}}};
  // In whatever order n numbers are added, the error is at most (n - 1) half units of the sum of their sizes;
  // the reference has one of its own in f64.
  auto count = static_cast<double>(std::max<std::int64_t>(shape.numel(), 1));
  rows.push_back({.name = "sum" + name,
                  .run = run([](auto... a) { return sum(a...); }, [](auto... a) { return sum(a...); }),
                  .inputs = {{shape}},
                  .reference = [=](const Arrays& x) { return reduce(x[0], axes, keepdims, total, total_size); },
                  .ulps = count,
                  .dtypes = all_dtypes,
                  .reorders = true,
                  .attributes = attributes});
  auto mean_of = [](const std::vector<double>& t) { return total(t) / static_cast<double>(t.size()); };
  auto mean_size = [](const std::vector<double>& t) { return total_size(t) / static_cast<double>(t.size()); };
  rows.push_back({.name = "mean" + name,
                  .run = run([](auto... a) { return mean(a...); }, [](auto... a) { return mean(a...); }),
                  .inputs = {{shape}},
                  .reference = [=](const Arrays& x) { return reduce(x[0], axes, keepdims, mean_of, mean_size); },
                  .ulps = count + 1,
                  .reorders = true,
                  .attributes = attributes});
  if (shape.numel() == 0) return;
  auto largest = [](const std::vector<double>& t) { return *std::max_element(t.begin(), t.end()); };
  rows.push_back({.name = "max" + name,
                  .run = run([](auto... a) { return max(a...); }, [](auto... a) { return max(a...); }),
                  .inputs = {{shape, Fill::spread}},
                  .reference = [=](const Arrays& x) { return reduce(x[0], axes, keepdims, largest, total_size); },
                  .ulps = 0,
                  .dtypes = all_dtypes,
                  .attributes = attributes});
}

// NumPy's matmul, one product at a time.
Array product(const Arrays& inputs) {
  Array a = inputs[0], b = inputs[1];
  bool row = a.shape.rank() == 1, column = b.shape.rank() == 1;
  if (row) a.shape = {1, a.shape[0]};
  if (column) b.shape = {b.shape[0], 1};
  auto batch_of = [](const Shape& shape) { return Shape({shape.data(), static_cast<std::size_t>(shape.rank() - 2)}); };
  Shape batch;
  broadcast(batch_of(a.shape), batch_of(b.shape), batch);
  std::int64_t m = a.shape[a.shape.rank() - 2], k = a.shape[a.shape.rank() - 1], n = b.shape[b.shape.rank() - 1];
  Array result{batch, {}};
  if (!row) result.shape.push_back(m);
  if (!column) result.shape.push_back(n);
  for_each_index(batch, [&](const Index& which) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        std::vector<double> terms;
        for (std::int64_t l = 0; l < k; ++l) {
          Index left = which, right = which;
          left.insert(left.end(), {i, l});
          right.insert(right.end(), {l, j});
          terms.push_back(at(a, left) * at(b, right));
        }
        result.values.push_back(total(terms));
        result.scales.push_back(total_size(terms));
      }
  });
  return result;
}

void add_product(std::vector<Row>& rows, const Shape& a, const Shape& b) {
  rows.push_back({.name = "matmul" + to_string(a) + to_string(b),
                  .run = [](auto x) { return matmul(x[0], x[1]); },
                  .inputs = {{a}, {b}},
                  .reference = product,
                  // As a sum; each product adds a half unit of its own.
                  .ulps = static_cast<double>(a[a.rank() - 1]) + 1,
                  .dtypes = all_numbers,
                  .reorders = true});
}

void add_products(std::vector<Row>& rows) {
  const Shape pairs[][2] = {
      {{2, 3}, {3, 4}},
      {{1, 5}, {5, 1}},
      {{3}, {3}},
      {{3}, {3, 4}},
      {{2, 3}, {3}},
      {{2, 2, 3}, {2, 3, 2}},
      {{2, 2, 3}, {3, 2}},
      {{2, 3}, {3, 3, 2}},
      {{2, 1, 2, 3}, {3, 3, 2}},
      {{3}, {2, 3, 2}},
      {{2, 2, 3}, {3}},
      {{2, 0}, {0, 3}},
      {{0, 3}, {3, 2}},
      {{0, 2, 3}, {3, 2}},
      {{2, 0, 3}, {3, 2}},
      {{1, 1}, {1, 1}},
      {{2, 1}, {1, 3}},
      // Around the size below which a product is worked out in place, and above what fits a register block.
      {{8, 8}, {8, 8}},
      {{8, 8}, {8, 9}},
      {{1, 16}, {16, 32}},
      {{1, 17}, {17, 32}},
      {{70, 66}, {66, 69}},
      {{2, 65, 3}, {2, 3, 67}},
      {{1, 130}, {130, 3}},
      {{130, 1}, {1, 5}},
  };
  for (const auto& [a, b] : pairs) add_product(rows, a, b);
  // Transposed operands are read in place, with one or both turned.
  for (int turned = 1; turned < 4; ++turned) {
    auto turn = [](const Array& x) {
      return make({x.shape[1], x.shape[0]}, [&](const Index& i) { return at(x, {i[1], i[0]}); });
    };
    for (std::int64_t n : {3, 20})
      rows.push_back(
          {.name = "matmul of transposed operands " + std::to_string(turned) + " " + std::to_string(n),
           .run =
               [=](auto x) { return matmul(turned & 1 ? transpose(x[0]) : x[0], turned & 2 ? transpose(x[1]) : x[1]); },
           .inputs = {{turned & 1 ? Shape{n, 2} : Shape{2, n}}, {turned & 2 ? Shape{4, n} : Shape{n, 4}}},
           .reference =
               [=](const Arrays& x) {
                 return product({turned & 1 ? turn(x[0]) : x[0], turned & 2 ? turn(x[1]) : x[1]});
               },
           .ulps = static_cast<double>(n) + 1,
           .dtypes = all_numbers,
           .reorders = true});
  }
}

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

}  // namespace

void add_reduce_rows(std::vector<Row>& rows) {
  for (bool keepdims : {false, true}) {
    for (const Axes& axes : {Axes{}, {0}, {1}, {2}, {-1}, {0, 2}, {0, 1}, {1, 2}, {2, 0, 1}})
      add_reductions(rows, {2, 3, 4}, axes, keepdims);
    add_reductions(rows, {}, {}, keepdims);
    for (const Axes& axes : {Axes{}, {0}, {1}}) add_reductions(rows, {3, 0}, axes, keepdims);
    for (const Axes& axes : {Axes{}, {0}, {1}}) add_reductions(rows, {9, 33}, axes, keepdims);
    add_reductions(rows, {3, 1, 2}, {1}, keepdims);
    // More than a tile of columns, a part of rows, a block of a row.
    for (const Axes& axes : {Axes{0}, {1}}) add_reductions(rows, {70, 140}, axes, keepdims);
    add_reductions(rows, {2100}, {}, keepdims);
  }
  for (const Axes& axes : {Axes{0}, {1, 3}, {0, 2, 4, 6}}) add_reductions(rows, {2, 1, 2, 1, 2, 1, 2, 2}, axes, false);
  add_products(rows);
  add_softmax(rows, {}, -1);
  add_softmax(rows, {5}, 0);
  add_softmax(rows, {3, 1}, 1);
  add_softmax(rows, {0, 3}, 1);
  add_softmax(rows, {3, 0}, 1);
  add_softmax(rows, {2, 35}, -1);
  add_softmax(rows, {2, 1100}, -1);
  for (int axis : {0, 1, 2, -3}) add_softmax(rows, {2, 3, 4}, axis);
}

void add_random_reduce_rows(std::vector<Row>& rows, Random& random) {
  for (const Axes& axes : {Axes{}, {0}, {1}, {-1}, {0, 2}})
    add_reductions(rows, random_shape(random, 3, 20), axes, random() % 2 == 0);
  for (int trial = 0; trial < 4; ++trial) {
    std::int64_t inner = random_size(random, 1, 200);
    add_product(rows, {random_size(random, 1, 90), inner}, {inner, random_size(random, 1, 90)});
    add_product(rows, {random_size(random, 1, 4), random_size(random), inner}, {inner, random_size(random)});
    add_softmax(rows, random_shape(random, 2, 90), trial % 2);
  }
}

}  // namespace reel_test
