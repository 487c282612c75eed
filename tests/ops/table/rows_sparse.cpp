#include <algorithm>
#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// The entries of a matrix of this shape.
struct Pattern {
  Shape shape;
  std::vector<std::int64_t> offsets, columns;

  std::int64_t entries() const { return std::ssize(columns); }
  CSRMatrix with(const Tensor& values) const { return csr_matrix(tensor(offsets), tensor(columns), values, shape); }
  Attributes attributes(bool transposed = false) const {
    return {{"shape", {shape.begin(), shape.end()}},
            {"offsets", {offsets.begin(), offsets.end()}},
            {"columns", {columns.begin(), columns.end()}},
            {"transposed", {transposed ? 1.0 : 0.0}}};
  }
};

// About one element in `every`.
Pattern random_pattern(Random& random, const Shape& shape, std::int64_t every) {
  Pattern pattern{shape, {0}, {}};
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    for (std::int64_t column = 0; column < shape[1]; ++column)
      if (random_size(random, 1, every) == 1) pattern.columns.push_back(column);
    pattern.offsets.push_back(pattern.entries());
  }
  return pattern;
}

std::size_t place(std::int64_t index) { return static_cast<std::size_t>(index); }

// The entries by rows; duplicates are added.
Array dense_of(const Shape& shape, const std::vector<double>& rows, const std::vector<double>& columns,
               const Array& values) {
  Array dense = make(shape, [](const Index&) { return 0.0; });
  dense.scales.assign(dense.values.size(), 0);
  for (std::size_t e = 0; e < values.values.size(); ++e) {
    auto row = static_cast<std::int64_t>(rows[e]), column = static_cast<std::int64_t>(columns[e]);
    std::size_t at = place((row < 0 ? row + shape[0] : row) * shape[1] + (column < 0 ? column + shape[1] : column));
    dense.values[at] += values.values[e];
    dense.scales[at] += std::abs(values.values[e]);
  }
  return dense;
}

Array dense_of(const Pattern& p, const Array& values) {
  std::vector<double> rows;
  for (std::int64_t row = 0; row < p.shape[0]; ++row)
    rows.resize(place(p.offsets[place(row + 1)]), static_cast<double>(row));
  return dense_of(p.shape, rows, {p.columns.begin(), p.columns.end()}, values);
}

void add_product(std::vector<Row>& rows, const Pattern& p, const Shape& dense, bool transposed, bool by_rows = false) {
  std::int64_t inner = p.shape[transposed ? 0 : 1], most = 0;
  Shape shape = dense;
  shape[0] = p.shape[transposed ? 1 : 0];
  most = std::min(p.entries(), inner);
  rows.push_back(
      {.name = "csr_matmul " + to_string(p.shape) + (transposed ? "^T " : " ") + to_string(dense) +
               (by_rows ? " by rows" : ""),
       .run = [=](auto x) { return matmul(p.with(x[0]), x[1], {.transposed = transposed, .row_gradient = by_rows}); },
       .inputs = {{{p.entries()}}, {dense}},
       .reference =
           [=](const Arrays& x) {
             Array matrix = dense_of(p, x[0]);
             Array y = make(shape, [](const Index&) { return 0.0; });
             y.scales.assign(y.values.size(), 0);
             std::int64_t width = dense.rank() == 1 ? 1 : dense[1];
             for (std::int64_t i = 0; i < shape[0]; ++i)
               for (std::int64_t k = 0; k < inner; ++k)
                 for (std::int64_t j = 0; j < width; ++j) {
                   std::int64_t at = transposed ? k * p.shape[1] + i : i * p.shape[1] + k;
                   double term = matrix.values[place(at)] * x[1].values[place(k * width + j)];
                   y.values[place(i * width + j)] += term;
                   y.scales[place(i * width + j)] += std::abs(term);
                 }
             return y;
           },
       // Half a unit for each product and each sum of the largest number of terms.
       .ulps = 1 + static_cast<double>(most),
       .attributes = p.attributes(transposed)});
}

void add_matrix(std::vector<Row>& rows, const Pattern& p) {
  rows.push_back({.name = "csr_matrix " + to_string(p.shape),
                  .run = [=](auto x) { return to_dense(p.with(x[0])); },
                  .inputs = {{{p.entries()}}},
                  .reference = [=](const Arrays& x) { return dense_of(p, x[0]); },
                  .ulps = 0,
                  .attributes = p.attributes()});
  Row same = rows.back();
  same.name = "to_dense " + to_string(p.shape);
  same.run = [=](auto x) {
    CSRMatrix matrix = p.with(x[0]);
    return to_dense(csr_matrix(matrix.row_offsets(), matrix.column_indices(), x[0], p.shape).with_values(x[0]));
  };
  rows.push_back(same);
}

struct Coordinates {
  Shape shape;
  std::vector<std::int64_t> rows, columns;
};

void add_coordinates(std::vector<Row>& rows, const Coordinates& c) {
  std::int64_t count = std::ssize(c.rows);
  rows.push_back({.name = "csr_from_coordinates " + to_string(c.shape) + " " + std::to_string(count),
                  .run = [=](auto x) { return to_dense(csr_from_coordinates(x[0], x[1], x[2], c.shape)); },
                  .inputs = {{{count}, Fill::indices, c.rows}, {{count}, Fill::indices, c.columns}, {{count}}},
                  .reference = [=](const Arrays& x) { return dense_of(c.shape, x[0].values, x[1].values, x[2]); },
                  // Half a unit for each sum.
                  .ulps = static_cast<double>(count) / 2,
                  .attributes = {{"shape", {c.shape.begin(), c.shape.end()}}}});
}

// Only positive elements are stored.
void add_from_dense(std::vector<Row>& rows, const Shape& shape) {
  rows.push_back(
      {.name = "csr_from_dense " + to_string(shape),
       .run = [=](auto x) { return to_dense(csr_from_dense(where(x[0] > 0, x[0], 0))); },
       .inputs = {{shape}},
       .reference =
           [](const Arrays& x) { return make(x[0].shape, [&](const Index& i) { return std::max(0.0, at(x[0], i)); }); },
       .ulps = 0});
}

Row by_rows_row(const Shape& table, const Shape& shape, const std::vector<std::int64_t>& indices) {
  Shape result = shape;
  result.push_back(table[1]);
  return {.name = "embedding by rows " + to_string(table) + " " + to_string(shape),
          .run = [](auto x) { return embedding(x[0], x[1], {.row_gradient = true}); },
          .inputs = {{table}, {shape, Fill::indices, indices}},
          .reference =
              [=](const Arrays& x) {
                return make(result, [&](Index i) {
                  std::int64_t column = i.back();
                  i.pop_back();
                  auto row = static_cast<std::int64_t>(at(x[1], i));
                  return at(x[0], {row < 0 ? row + table[0] : row, column});
                });
              },
          .ulps = 0};
}

void add_rows(std::vector<Row>& rows) {
  const Pattern small{{3, 4}, {0, 2, 2, 5}, {1, 3, 0, 1, 2}};
  for (bool transposed : {false, true}) {
    add_product(rows, small, {transposed ? 3 : 4, 5}, transposed);
    add_product(rows, small, {transposed ? 3 : 4}, transposed);
    add_product(rows, small, {transposed ? 3 : 4, 5}, transposed, true);
    add_product(rows, {{2, 3}, {0, 0, 0}, {}}, {transposed ? 2 : 3, 2}, transposed, true);
    add_product(rows, small, {transposed ? 3 : 4, 0}, transposed);
    add_product(rows, {{1, 1}, {0, 1}, {0}}, {1, 1}, transposed);
    add_product(rows, {{2, 3}, {0, 0, 0}, {}}, {transposed ? 2 : 3, 2}, transposed);
    add_product(rows, {{0, 3}, {0}, {}}, {transposed ? 0 : 3, 2}, transposed);
    add_product(rows, {{3, 0}, {0, 0, 0, 0}, {}}, {transposed ? 3 : 0, 2}, transposed);
    // Wider than four vectors, and with a cut one behind two and behind one.
    for (std::int64_t width : {3, 7, 19, 37, 75, 151}) {
      Random random(static_cast<std::uint64_t>(width));
      Pattern pattern = random_pattern(random, {6, 9}, 3);
      add_product(rows, pattern, {transposed ? 6 : 9, width}, transposed);
    }
    // More columns than a block, and several threads.
    Random random(8);
    add_product(rows, random_pattern(random, {40, 700}, 9), {transposed ? 40 : 700, 33}, transposed);
    add_product(rows, random_pattern(random, {3, 9000}, 40), {transposed ? 3 : 9000, 64}, transposed);
  }
  for (const Pattern& pattern : {small, Pattern{{2, 3}, {0, 0, 0}, {}}, Pattern{{0, 0}, {0}, {}}})
    add_matrix(rows, pattern);
  add_coordinates(rows, {{3, 4}, {2, 0, 2, 1, 2}, {3, 1, 0, 2, 3}});
  add_coordinates(rows, {{3, 4}, {-1, 2, 0, -3}, {1, -3, -4, 0}});
  add_coordinates(rows, {{3, 4}, {0, 1, 2}, {3, 2, 0}});
  add_coordinates(rows, {{1, 1}, {0, 0, 0}, {0, 0, 0}});
  add_coordinates(rows, {{2, 5}, {}, {}});
  rows.push_back(by_rows_row({6, 3}, {2, 3}, {5, 0, -1, 0, 2, -6}));
  rows.push_back(by_rows_row({6, 3}, {}, {4}));
  rows.push_back(by_rows_row({6, 1}, {0}, {}));
  for (const Shape& shape : {Shape{3, 5}, Shape{1, 1}, Shape{0, 3}, Shape{3, 0}, Shape{9, 41}})
    add_from_dense(rows, shape);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 4; ++trial) {
    Pattern pattern = random_pattern(random, random_shape(random, 2, 60), 1 + trial * 3);
    bool transposed = trial % 2 == 1;
    Shape dense = random_shape(random, 2, 90);
    dense[0] = pattern.shape[transposed ? 0 : 1];
    add_product(rows, pattern, dense, transposed);
    add_matrix(rows, pattern);
    Coordinates coordinates{pattern.shape, {}, {}};
    for (std::int64_t i = random_size(random, 1, 80); i > 0; --i) {
      coordinates.rows.push_back(random_size(random, 0, pattern.shape[0] - 1));
      coordinates.columns.push_back(random_size(random, 0, pattern.shape[1] - 1));
    }
    add_coordinates(rows, coordinates);
    add_from_dense(rows, pattern.shape);
  }
}

}  // namespace

const RowFamily sparse_rows{add_rows, add_random_rows};

}  // namespace reel_test
