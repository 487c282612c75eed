#include <cmath>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

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
                  // The bound of a sum; each product adds a half unit of its own.
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
      // Around the size below which a product is computed in place, and above what fits a register block.
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
  // Transposed operands are read in place, with one or both transposed.
  for (int transposed = 1; transposed < 4; ++transposed) {
    auto turn = [](const Array& x) {
      return make({x.shape[1], x.shape[0]}, [&](const Index& i) { return at(x, {i[1], i[0]}); });
    };
    for (std::int64_t n : {3, 20})
      rows.push_back(
          {.name = "matmul of transposed operands " + std::to_string(transposed) + " " + std::to_string(n),
           .run =
               [=](auto x) {
                 return matmul(transposed & 1 ? transpose(x[0]) : x[0], transposed & 2 ? transpose(x[1]) : x[1]);
               },
           .inputs = {{transposed & 1 ? Shape{n, 2} : Shape{2, n}}, {transposed & 2 ? Shape{4, n} : Shape{n, 4}}},
           .reference =
               [=](const Arrays& x) {
                 return product({transposed & 1 ? turn(x[0]) : x[0], transposed & 2 ? turn(x[1]) : x[1]});
               },
           .ulps = static_cast<double>(n) + 1,
           .dtypes = all_numbers,
           .reorders = true});
  }
}

void add_bmm(std::vector<Row>& rows, std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n) {
  Shape a{batch, m, k}, b{batch, k, n};
  rows.push_back({.name = "bmm" + to_string(a) + to_string(b),
                  .run = [](auto x) { return bmm(x[0], x[1]); },
                  .inputs = {{a}, {b}},
                  .reference = product,
                  .ulps = static_cast<double>(k) + 1,
                  .dtypes = all_numbers,
                  .reorders = true});
}

void add_addmm(std::vector<Row>& rows, const Shape& c, const Shape& a, const Shape& b, double beta, double alpha) {
  bool whole = beta == std::trunc(beta) && alpha == std::trunc(alpha);
  Row row{.name = "addmm" + to_string(c) + to_string(a) + to_string(b),
          .run = [=](auto x) { return addmm(x[0], x[1], x[2], {.beta = beta, .alpha = alpha}); },
          .inputs = {{c}, {a}, {b}},
          .reference =
              [=](const Arrays& x) {
                Array y = product({x[1], x[2]});
                std::size_t i = 0;
                for_each_index(y.shape, [&](const Index& index) {
                  double added = beta == 0 ? 0 : beta * at(x[0], index);
                  y.values[i] = alpha * y.values[i] + added;
                  y.scales[i] = std::abs(alpha) * y.scales[i] + std::abs(added);
                  ++i;
                });
                return y;
              },
          // The bound of a product; half a unit for each factor and the sum.
          .ulps = static_cast<double>(a[1]) + 3,
          // Halves are rounded before the sum, which may be small beside its terms.
          .dtypes = whole ? std::vector<DType>{f32, f64, i32, i64} : std::vector<DType>{f32, f64},
          .reorders = true,
          .attributes = {{"beta", {beta}}, {"alpha", {alpha}}}};
  rows.push_back(std::move(row));
}

void add_outer(std::vector<Row>& rows, const Shape& a, const Shape& b) {
  rows.push_back({.name = "outer" + to_string(a) + to_string(b),
                  .run = [](auto x) { return outer(x[0], x[1]); },
                  .inputs = {{a}, {b}},
                  .reference =
                      [](const Arrays& x) {
                        Array y{{x[0].shape.numel(), x[1].shape.numel()}, {}};
                        for (double left : x[0].values)
                          for (double right : x[1].values) y.values.push_back(left * right);
                        return y;
                      },
                  .dtypes = all_numbers});
}

void add_dot(std::vector<Row>& rows, std::int64_t size) {
  rows.push_back({.name = "dot of " + std::to_string(size),
                  .run = [](auto x) { return dot(x[0], x[1]); },
                  .inputs = {{{size}}, {{size}}},
                  .reference = product,
                  .ulps = static_cast<double>(size) + 1,
                  .dtypes = all_numbers,
                  .reorders = true});
}

void add_rows(std::vector<Row>& rows) {
  add_products(rows);
  add_bmm(rows, 2, 3, 2, 4);
  add_bmm(rows, 3, 1, 4, 1);
  add_bmm(rows, 0, 2, 3, 2);
  add_bmm(rows, 2, 2, 0, 3);
  add_bmm(rows, 5, 9, 8, 10);
  add_addmm(rows, {2, 4}, {2, 3}, {3, 4}, 1, 1);
  for (const Shape& c : {Shape{4}, Shape{1, 4}, Shape{2, 1}, Shape{1}, Shape{}})
    add_addmm(rows, c, {2, 3}, {3, 4}, 1, 1);
  add_addmm(rows, {33}, {40, 35}, {35, 33}, 1, 1);
  add_addmm(rows, {2}, {3, 0}, {0, 2}, 1, 1);
  add_addmm(rows, {4}, {2, 3}, {3, 4}, 2, -1);
  add_addmm(rows, {2, 1}, {2, 3}, {3, 4}, 0.5, 1.5);
  add_addmm(rows, {}, {2, 3}, {3, 4}, -1, 0.25);
  add_addmm(rows, {1, 1}, {1, 0}, {0, 1}, 3, 2);
  add_addmm(rows, {0, 2}, {0, 3}, {3, 2}, 1, 1);
  add_addmm(rows, {40, 33}, {40, 35}, {35, 33}, 1, 2);
  add_addmm(rows, {3}, {2, 2}, {2, 3}, 0, 2);
  add_outer(rows, {3}, {4});
  add_outer(rows, {2, 3}, {2, 2});
  add_outer(rows, {}, {5});
  add_outer(rows, {0}, {3});
  add_outer(rows, {1}, {1});
  add_dot(rows, 0);
  add_dot(rows, 1);
  add_dot(rows, 7);
  add_dot(rows, 600);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 4; ++trial) {
    std::int64_t inner = random_size(random, 1, 200);
    add_product(rows, {random_size(random, 1, 90), inner}, {inner, random_size(random, 1, 90)});
    add_product(rows, {random_size(random, 1, 4), random_size(random), inner}, {inner, random_size(random)});
    add_bmm(rows, random_size(random, 1, 5), random_size(random), inner, random_size(random));
    std::int64_t m = random_size(random), n = random_size(random);
    add_addmm(rows, trial % 2 == 0 ? Shape{n} : Shape{m, 1}, {m, inner}, {inner, n}, trial - 1, 0.5 * trial);
    add_outer(rows, random_shape(random, trial % 3, 9), {n});
    add_dot(rows, inner);
  }
}

}  // namespace

const RowFamily matmul_rows{add_rows, add_random_rows};

}  // namespace reel_test
