#include <algorithm>
#include <map>
#include <numeric>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// The positions along an axis, sorted by their elements at an index whose entry for the axis is varied; equal elements
// stay in order.
std::vector<std::int64_t> order_at(const Array& x, Index i, std::size_t axis, bool descending) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(x.shape[static_cast<int>(axis)]));
  std::iota(places.begin(), places.end(), 0);
  auto value = [&](std::int64_t place) {
    i[axis] = place;
    return at(x, i);
  };
  std::stable_sort(places.begin(), places.end(), [&](std::int64_t a, std::int64_t b) {
    return descending ? value(a) > value(b) : value(a) < value(b);
  });
  return places;
}

struct Ordering {
  Shape x;
  int axis;
  bool descending;
  std::int64_t count = -1;  // of topk

  Attributes attributes(bool indices) const {
    return {{"axis", {static_cast<double>(axis)}},
            {"descending", {descending ? 1.0 : 0.0}},
            {"k", {static_cast<double>(count)}},
            {"indices", {indices ? 1.0 : 0.0}}};
  }
  Array expected(const Array& from, bool indices) const {
    int place = axis < 0 ? axis + x.rank() : axis;
    auto along = static_cast<std::size_t>(place);
    Shape shape = x;
    if (count >= 0) shape[place] = count;
    std::map<Index, std::vector<std::int64_t>> orders;
    return make(shape, [&](Index i) {
      auto wanted = static_cast<std::size_t>(i[along]);
      i[along] = 0;
      std::vector<std::int64_t>& order = orders[i];
      if (order.empty()) order = order_at(from, i, along, descending);
      i[along] = order[wanted];
      return indices ? static_cast<double>(i[along]) : at(from, i);
    });
  }
  ValuesAndIndices run(const Tensor& from) const {
    if (count < 0) return sort(from, axis, {.descending = descending});
    return topk(from, count, axis, {.largest = descending});
  }
};

Row values_row(const Ordering& c) {
  std::string op = c.count < 0 ? "sort" : "topk";
  return {.name = op + " " + to_string(c.x) + " axis " + std::to_string(c.axis),
          .run = [c](auto x) { return c.run(x[0]).values; },
          .inputs = {{c.x, Fill::spread}},
          .reference = [c](const Arrays& x) { return c.expected(x[0], false); },
          .ulps = 0,
          .dtypes = all_dtypes,
          .attributes = c.attributes(false)};
}

// Equal elements too, so that their order shows.
Row indices_row(const Ordering& c) {
  std::string op = c.count < 0 ? "sort" : "topk";
  return {.name = op + " " + to_string(c.x) + " axis " + std::to_string(c.axis) + " indices",
          .run = [c](auto x) { return c.run(x[0]).indices; },
          .inputs = {{c.x}},
          .reference = [c](const Arrays& x) { return c.expected(x[0], true); },
          .ulps = 0,
          .dtypes = all_dtypes,
          .differentiable = false,
          .attributes = c.attributes(true)};
}

Row argsort_row(const Ordering& c) {
  Row row = indices_row(c);
  row.name = "argsort " + to_string(c.x) + " axis " + std::to_string(c.axis);
  row.run = [c](auto x) { return argsort(x[0], c.axis, {.descending = c.descending}); };
  return row;
}

Row searchsorted_row(const Shape& sorted, const Shape& values, bool right) {
  return {.name = "searchsorted " + to_string(sorted) + " " + to_string(values),
          .run = [right](auto x) { return searchsorted(sort(x[0]).values, x[1], {.right = right}); },
          .inputs = {{sorted}, {values}},
          .reference =
              [=](const Arrays& x) {
                // The order of the row does not matter to a count.
                return make(values, [&](Index i) {
                  double value = at(x[1], i), count = 0;
                  for (std::int64_t k = 0; k < sorted[-1]; ++k) {
                    double element = x[0].values[static_cast<std::size_t>(k)];
                    if (sorted.rank() > 1) {
                      i.back() = k;
                      element = at(x[0], i);
                    }
                    count += right ? element <= value : element < value;
                  }
                  return count;
                });
              },
          .ulps = 0,
          .dtypes = all_dtypes,
          .differentiable = false,
          .attributes = {{"right", {right ? 1.0 : 0.0}}}};
}

void add_rows(std::vector<Row>& rows) {
  const Ordering sorts[] = {
      {{5}, 0, false},      {{1}, -1, true},       {{0}, 0, false},       {{3, 4}, 1, false},
      {{3, 4}, 0, true},    {{2, 3, 4}, 1, false}, {{2, 3, 4}, -1, true}, {{3, 0}, 0, false},
      {{1, 7, 1}, 1, true}, {{70}, 0, false},      {{2, 1, 3}, 1, false},
  };
  for (const Ordering& c : sorts) {
    rows.push_back(values_row(c));
    rows.push_back(indices_row(c));
    rows.push_back(argsort_row(c));
  }
  // Beyond what is sorted by comparisons, with one thread and with several.
  for (const Ordering& c : {Ordering{{1500}, 0, true}, Ordering{{70000}, 0, false}, Ordering{{1100, 2}, 0, false}})
    rows.push_back(argsort_row(c));
  const Ordering firsts[] = {
      {{5}, 0, true, 2},        {{5}, 0, false, 5},       {{4, 3}, 0, true, 1},
      {{2, 3, 4}, 1, false, 2}, {{2, 3, 4}, -1, true, 3}, {{3, 4}, 1, true, 0},
      {{3, 0}, 1, true, 0},     {{70}, 0, true, 66},      {{200}, -1, false, 7},
  };
  for (const Ordering& c : firsts) {
    rows.push_back(values_row(c));
    rows.push_back(indices_row(c));
  }
  for (bool right : {false, true}) {
    rows.push_back(searchsorted_row({6}, {4}, right));
    rows.push_back(searchsorted_row({6}, {2, 3}, right));
    rows.push_back(searchsorted_row({5}, {}, right));
    rows.push_back(searchsorted_row({0}, {2}, right));
    rows.push_back(searchsorted_row({3, 7}, {3, 2}, right));
    rows.push_back(searchsorted_row({2, 1, 9}, {2, 1, 3}, right));
    rows.push_back(searchsorted_row({80}, {70}, right));
  }
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    Shape x = random_shape(random, static_cast<int>(random_size(random, 1, 3)), 20);
    int axis = static_cast<int>(random_size(random, 0, x.rank() - 1));
    bool descending = repeat == 1;
    rows.push_back(values_row({x, axis, descending}));
    rows.push_back(indices_row({x, axis, descending}));
    rows.push_back(argsort_row({x, axis, descending}));
    std::int64_t count = random_size(random, 0, x[axis]);
    rows.push_back(values_row({x, axis, !descending, count}));
    rows.push_back(indices_row({x, axis, !descending, count}));
    // libtorch does not specify the order of equal elements, and integers are often equal.
    rows.back().dtypes = floating_dtypes;
    Shape values = random_shape(random, 2);
    rows.push_back(searchsorted_row(random_shape(random, 1), values, descending));
    rows.push_back(searchsorted_row({values[0], 9}, values, descending));
  }
}

}  // namespace

const RowFamily sort_rows{add_rows, add_random_rows};

}  // namespace reel_test
