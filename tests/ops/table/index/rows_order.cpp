#include <algorithm>
#include <cmath>
#include <map>

#include "ops/table/table.h"

// Rows of quantiles, cumulative extremes, sets and histograms.

namespace reel_test {

using namespace reel;

namespace {

std::size_t counted(int axis, const Shape& x) { return static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis); }

// The elements of x along an axis, at an index whose entry for the axis is ignored.
std::vector<double> line_of(const Array& x, Index i, std::size_t axis) {
  std::vector<double> line;
  for (std::int64_t k = 0; k < x.shape[static_cast<int>(axis)]; ++k) {
    i[axis] = k;
    line.push_back(at(x, i));
  }
  return line;
}

double quantile_of(std::vector<double> line, double q, QuantileInterpolation interpolation) {
  std::sort(line.begin(), line.end());
  double position = q * static_cast<double>(line.size() - 1), below = std::floor(position);
  double a = line[static_cast<std::size_t>(below)], b = line[static_cast<std::size_t>(std::ceil(position))];
  switch (interpolation) {
    case QuantileInterpolation::lower: return a;
    case QuantileInterpolation::higher: return b;
    case QuantileInterpolation::midpoint: return (a + b) / 2;
    case QuantileInterpolation::nearest: return line[static_cast<std::size_t>(std::nearbyint(position))];
    default: return a + (b - a) * (position - below);
  }
}

Row quantile_row(const Shape& x, double q, int axis, QuantileInterpolation interpolation, bool keepdims) {
  return {
      .name = "quantile " + std::to_string(q) + to_string(x) + " axis " + std::to_string(axis),
      .run = [=](auto in) { return quantile(in[0], q, axis, {.interpolation = interpolation, .keepdims = keepdims}); },
      .inputs = {{x, Fill::spread}},
      .reference =
          [=](const Arrays& in) {
            Shape kept = x;
            kept[axis] = 1;
            Array y = make(kept, [&](const Index& i) {
              return quantile_of(line_of(in[0], i, counted(axis, x)), q, interpolation);
            });
            y.scales.assign(y.values.size(), 4);
            Shape dropped;
            for (int i = 0; i < x.rank(); ++i)
              if (keepdims || counted(axis, x) != static_cast<std::size_t>(i)) dropped.push_back(kept[i]);
            y.shape = dropped;
            return y;
          },
      .ulps = 3,
      .half_roundings = 6,
      .attributes = {{"axis", {static_cast<double>(axis)}},
                     {"q", {q}},
                     {"interpolation", {static_cast<double>(interpolation)}},
                     {"keepdims", {keepdims ? 1.0 : 0.0}}}};
}

// Quantiles of all elements, at several fractions; both have a gradient.
Row quantiles_row(const Shape& x, const Shape& q) {
  return {.name = "quantile at " + to_string(q) + " of " + to_string(x),
          .run = [](auto in) { return quantile(in[0], sigmoid(to(in[1], f64))); },
          .inputs = {{x, Fill::spread}, {q}},
          .reference =
              [=](const Arrays& in) {
                Array y = make(q, [&](const Index& i) {
                  double fraction = 1 / (1 + std::exp(-at(in[1], i)));
                  return quantile_of(in[0].values, fraction, QuantileInterpolation::linear);
                });
                y.scales.assign(y.values.size(), 8);
                return y;
              },
          .ulps = 8,
          .half_roundings = 12};
}

Row kthvalue_row(const Shape& x, std::int64_t k, int axis, bool indices, bool keepdims) {
  return {.name = "kthvalue " + std::to_string(k) + to_string(x) + " axis " + std::to_string(axis) +
                  (indices ? " indices" : ""),
          .run =
              [=](auto in) {
                auto [values, found] = kthvalue(in[0], k, axis, {.keepdims = keepdims});
                return indices ? found : values;
              },
          .inputs = {{x, Fill::spread}},
          .reference =
              [=](const Arrays& in) {
                Shape kept = x;
                kept[axis] = 1;
                Array y = make(kept, [&](const Index& i) {
                  std::vector<double> line = line_of(in[0], i, counted(axis, x)), sorted = line;
                  std::stable_sort(sorted.begin(), sorted.end());
                  double value = sorted[static_cast<std::size_t>(k - 1)];
                  if (!indices) return value;
                  // Equal elements have the order of a stable sort.
                  std::int64_t before =
                      k - 1 - std::count_if(line.begin(), line.end(), [&](double other) { return other < value; });
                  for (std::size_t place = 0; place < line.size(); ++place)
                    if (line[place] == value && before-- == 0) return static_cast<double>(place);
                  return -1.0;
                });
                Shape dropped;
                for (int i = 0; i < x.rank(); ++i)
                  if (keepdims || counted(axis, x) != static_cast<std::size_t>(i)) dropped.push_back(kept[i]);
                y.shape = dropped;
                return y;
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .differentiable = !indices,
          .attributes = {{"axis", {static_cast<double>(axis)}},
                         {"k", {static_cast<double>(k)}},
                         {"keepdims", {keepdims ? 1.0 : 0.0}},
                         {"indices", {indices ? 1.0 : 0.0}}}};
}

Row cumulative_row(bool largest, const Shape& x, int axis, bool indices) {
  std::string op = largest ? "cummax" : "cummin";
  return {.name = op + to_string(x) + " axis " + std::to_string(axis) + (indices ? " indices" : ""),
          .run =
              [=](auto in) {
                auto [values, found] = largest ? cummax(in[0], axis) : cummin(in[0], axis);
                return indices ? found : values;
              },
          .inputs = {{x, indices ? Fill::any : Fill::spread}},
          .reference =
              [=](const Arrays& in) {
                return make(x, [&](const Index& i) {
                  std::vector<double> line = line_of(in[0], i, counted(axis, x));
                  std::size_t best = 0;
                  for (std::size_t k = 0; k <= static_cast<std::size_t>(i[counted(axis, x)]); ++k)
                    if (largest ? line[k] >= line[best] : line[k] <= line[best]) best = k;
                  return indices ? static_cast<double>(best) : line[best];
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .differentiable = !indices,
          .attributes = {{"axis", {static_cast<double>(axis)}}, {"indices", {indices ? 1.0 : 0.0}}}};
}

enum class UniquePart : std::uint8_t { values, inverse, counts };

Tensor part_of(const UniqueElements& found, UniquePart part) {
  switch (part) {
    case UniquePart::values: return found.values;
    case UniquePart::inverse: return found.inverse;
    default: return found.counts;
  }
}

Row unique_row(const Shape& x, UniquePart part) {
  return {.name = "unique " + to_string(x) + " part " + std::to_string(static_cast<int>(part)),
          .run = [=](auto in) { return part_of(unique(in[0]), part); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                std::map<double, std::int64_t> counts;
                for (double value : in[0].values) ++counts[value];
                Array y;
                if (part == UniquePart::inverse)
                  return make(x, [&](const Index& i) {
                    return static_cast<double>(std::distance(counts.begin(), counts.find(at(in[0], i))));
                  });
                for (const auto& [value, count] : counts)
                  y.values.push_back(part == UniquePart::values ? value : static_cast<double>(count));
                y.shape = {static_cast<std::int64_t>(counts.size())};
                return y;
              },
          .ulps = 0,
          .dtypes = {i32, f32, f64, bf16, f16, i64, u8, boolean, i8, i16},
          .differentiable = false,
          .attributes = {{"part", {static_cast<double>(part)}}}};
}

// Distinct slices, compared by their elements in row-major order.
Row unique_slices_row(const Shape& x, int axis, UniquePart part) {
  return {.name = "unique " + to_string(x) + " axis " + std::to_string(axis) + " part " +
                  std::to_string(static_cast<int>(part)),
          .run = [=](auto in) { return part_of(unique(in[0], axis), part); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                std::size_t place = counted(axis, x);
                Shape rest = x;
                rest[axis] = 1;
                // In the order of the axis exchanged with the first one.
                std::vector<std::vector<double>> slices;
                for (std::int64_t k = 0; k < x[axis]; ++k) {
                  Shape order = rest;
                  std::swap(order[0], order[axis]);
                  std::vector<double>& elements = slices.emplace_back();
                  for_each_index(order, [&](Index i) {
                    std::swap(i[0], i[place]);
                    i[place] = k;
                    elements.push_back(at(in[0], i));
                  });
                }
                std::map<std::vector<double>, std::vector<std::int64_t>> found;
                for (std::size_t k = 0; k < slices.size(); ++k)
                  found[slices[k]].push_back(static_cast<std::int64_t>(k));
                if (part == UniquePart::inverse)
                  return make({x[axis]}, [&](const Index& i) {
                    auto slice = found.find(slices[static_cast<std::size_t>(i[0])]);
                    return static_cast<double>(std::distance(found.begin(), slice));
                  });
                std::vector<std::int64_t> first;
                Array counts;
                for (const auto& [elements, places] : found) {
                  first.push_back(places[0]);
                  counts.values.push_back(static_cast<double>(places.size()));
                }
                counts.shape = {static_cast<std::int64_t>(found.size())};
                if (part == UniquePart::counts) return counts;
                Shape shape = x;
                shape[axis] = counts.shape[0];
                return make(shape, [&](Index i) {
                  i[place] = first[static_cast<std::size_t>(i[place])];
                  return at(in[0], i);
                });
              },
          .ulps = 0,
          .dtypes = {boolean, i32, f32, f64, bf16, f16, i64, u8, i8, i16},
          .differentiable = false,
          .attributes = {{"axis", {static_cast<double>(axis)}}, {"part", {static_cast<double>(part)}}}};
}

Row bucketize_row(const Shape& x, std::int64_t boundaries, bool right) {
  return {.name = "bucketize " + to_string(x) + " in " + std::to_string(boundaries),
          .run = [=](auto in) { return bucketize(in[0], sort(in[1]).values, {.right = right}); },
          .inputs = {{x}, {{boundaries}}},
          .reference =
              [=](const Arrays& in) {
                return make(x, [&](const Index& i) {
                  double count = 0;
                  for (double end : in[1].values) count += right ? end <= at(in[0], i) : end < at(in[0], i);
                  return count;
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .differentiable = false,
          .attributes = {{"right", {right ? 1.0 : 0.0}}}};
}

Row bincount_row(const std::vector<std::int64_t>& x, bool weighted, std::int64_t minimum) {
  auto size = static_cast<std::int64_t>(x.size());
  return {.name = "bincount of " + std::to_string(size) + (weighted ? " with weights" : ""),
          .run =
              [=](auto in) {
                // The weights are drawn for every row; those that are not used have to be there.
                Tensor weights = needed(in[0]);
                return weighted ? bincount(in[1], {.weights = weights, .minimum_length = minimum})
                                : bincount(in[1], {.minimum_length = minimum});
              },
          .inputs = {{{size}}, {{size}, Fill::indices, x}},
          .reference =
              [=](const Arrays& in) {
                std::int64_t length = minimum;
                for (double value : in[1].values) length = std::max(length, static_cast<std::int64_t>(value) + 1);
                Array y{{length}, std::vector<double>(static_cast<std::size_t>(length)), {}};
                y.scales.assign(y.values.size(), 0);
                for (std::size_t i = 0; i < in[1].values.size(); ++i) {
                  double added = weighted ? in[0].values[i] : 1;
                  y.values[static_cast<std::size_t>(in[1].values[i])] += added;
                  y.scales[static_cast<std::size_t>(in[1].values[i])] += std::abs(added);
                }
                return y;
              },
          .ulps = 10,
          .dtypes = all_numbers,
          .differentiable = weighted,
          .attributes = {{"weighted", {weighted ? 1.0 : 0.0}}, {"minimum", {static_cast<double>(minimum)}}}};
}

Row histc_row(const Shape& x, std::int64_t bins, double low, double high) {
  return {.name = "histc " + to_string(x) + " in " + std::to_string(bins),
          .run = [=](auto in) { return histc(in[0], {.bins = bins, .low = low, .high = high}); },
          .inputs = {{x}},
          .reference =
              [=](const Arrays& in) {
                double first = low, last = high;
                const std::vector<double>& values = in[0].values;
                if (low == high && !values.empty()) {
                  first = *std::min_element(values.begin(), values.end());
                  last = *std::max_element(values.begin(), values.end());
                }
                if (first == last) {
                  first -= 1;
                  last += 1;
                }
                Array y{{bins}, std::vector<double>(static_cast<std::size_t>(bins)), {}};
                for (double value : values) {
                  if (value < first || value > last) continue;
                  auto place = static_cast<std::int64_t>((value - first) / (last - first) * static_cast<double>(bins));
                  ++y.values[static_cast<std::size_t>(std::min(place, bins - 1))];
                }
                return y;
              },
          .ulps = 0,
          .differentiable = false,
          .attributes = {{"bins", {static_cast<double>(bins)}}, {"low", {low}}, {"high", {high}}}};
}

void add_rows(std::vector<Row>& rows) {
  using enum QuantileInterpolation;
  for (QuantileInterpolation interpolation : {linear, lower, higher, midpoint, nearest})
    for (double q : {0.0, 0.3, 0.5, 1.0}) {
      rows.push_back(quantile_row({6}, q, 0, interpolation, false));
      rows.push_back(quantile_row({3, 5, 2}, q, 1, interpolation, true));
    }
  rows.push_back(quantile_row({1, 3}, 0.4, 0, linear, false));
  rows.push_back(quantile_row({0, 3}, 0.4, -1, linear, false));
  rows.push_back(quantiles_row({3, 4}, {3}));
  rows.push_back(quantiles_row({7}, {}));
  rows.push_back(quantiles_row({2, 2}, {0}));
  for (bool indices : {false, true}) {
    rows.push_back(kthvalue_row({5}, 2, 0, indices, false));
    rows.push_back(kthvalue_row({3, 4}, 4, -1, indices, true));
    rows.push_back(kthvalue_row({2, 3, 2}, 1, 1, indices, false));
    rows.push_back(kthvalue_row({0, 3}, 2, 1, indices, false));
    for (bool largest : {true, false})
      for (const auto& [shape, axis] : std::initializer_list<std::pair<Shape, int>>{
               {{1}, 0}, {{7}, 0}, {{3, 5}, 1}, {{4, 3}, 0}, {{2, 6, 2}, -2}, {{0, 3}, 0}, {{2, 0}, 0}, {{70}, 0}})
        rows.push_back(cumulative_row(largest, shape, axis, indices));
  }
  for (UniquePart part : {UniquePart::values, UniquePart::inverse, UniquePart::counts}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{9}, Shape{4, 5}, Shape{2, 0}, Shape{80}})
      rows.push_back(unique_row(shape, part));
    for (const auto& [shape, axis] : std::initializer_list<std::pair<Shape, int>>{
             {{6}, 0}, {{7, 2}, 0}, {{2, 9}, 1}, {{2, 8, 2}, 1}, {{5, 3}, 0}, {{0, 3}, 0}, {{1, 4}, -2}, {{30, 1}, 0}})
      rows.push_back(unique_slices_row(shape, axis, part));
  }
  for (bool right : {false, true}) {
    rows.push_back(bucketize_row({4}, 3, right));
    rows.push_back(bucketize_row({}, 5, right));
    rows.push_back(bucketize_row({2, 3}, 0, right));
    rows.push_back(bucketize_row({0}, 2, right));
  }
  for (bool weighted : {false, true}) {
    rows.push_back(bincount_row({3, 0, 3, 1, 5}, weighted, 0));
    rows.push_back(bincount_row({0}, weighted, 4));
    rows.push_back(bincount_row({}, weighted, 2));
  }
  rows.push_back(histc_row({9}, 4, 0, 0));
  rows.push_back(histc_row({4, 5}, 7, -1, 1.5));
  rows.push_back(histc_row({0}, 3, 0, 0));
  rows.push_back(histc_row({1}, 3, 0, 0));
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    Shape x = random_shape(random, 3, 9);
    int axis = static_cast<int>(random_size(random, 0, 2));
    rows.push_back(quantile_row(x, 0.25 * static_cast<double>(random_size(random, 0, 4)), axis,
                                static_cast<QuantileInterpolation>(repeat), repeat == 0));
    rows.push_back(kthvalue_row(x, random_size(random, 1, x[axis]), axis, repeat == 1, repeat == 2));
    // libtorch does not specify which of equal elements is found.
    if (repeat == 1) rows.back().dtypes = floating_dtypes;
    rows.push_back(cumulative_row(true, x, axis, repeat == 1));
    rows.push_back(cumulative_row(false, x, axis, repeat == 1));
    rows.push_back(unique_row(x, static_cast<UniquePart>(repeat)));
    rows.push_back(unique_slices_row(x, 0, static_cast<UniquePart>(repeat)));
    rows.push_back(bucketize_row(x, random_size(random), repeat == 1));
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = random_size(random); i > 0; --i) numbers.push_back(random_size(random, 0, 9));
    rows.push_back(bincount_row(numbers, repeat == 1, 5));
    rows.push_back(histc_row(x, random_size(random, 1, 9), -1, 1));
    // libtorch counts in the dtype itself, which rounds the edges of bins differently.
    rows.back().dtypes = {f64};
  }
}

}  // namespace

const RowFamily order_rows{add_rows, add_random_rows};

}  // namespace reel_test
