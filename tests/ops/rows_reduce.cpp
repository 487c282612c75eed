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
}

void add_random_reduce_rows(std::vector<Row>& rows, Random& random) {
  for (const Axes& axes : {Axes{}, {0}, {1}, {-1}, {0, 2}})
    add_reductions(rows, random_shape(random, 3, 20), axes, random() % 2 == 0);
}

}  // namespace reel_test
