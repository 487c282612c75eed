#include <algorithm>
#include <cmath>

#include "ops/table/linear_algebra/matrix.h"

// Rows of norms, ranks, pseudo-inverses, LU decompositions and exponentials of matrices, checked by what defines them.

namespace reel_test {

using namespace reel;

namespace {

const std::vector<DType> dtypes{f32, f64};

// The inverse, by elimination with pivots.
Matrix inverse(Matrix a) {
  Matrix b = identity(a.rows);
  for (std::int64_t k = 0; k < a.rows; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k; i < a.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (std::int64_t j = 0; j < a.columns; ++j) {
      std::swap(a(k, j), a(pivot, j));
      std::swap(b(k, j), b(pivot, j));
    }
    double divisor = a(k, k);
    for (std::int64_t j = 0; j < a.columns; ++j) {
      a(k, j) /= divisor;
      b(k, j) /= divisor;
    }
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double factor = i == k ? 0 : a(i, k);
      for (std::int64_t j = 0; j < a.columns; ++j) {
        a(i, j) -= factor * a(k, j);
        b(i, j) -= factor * b(k, j);
      }
    }
  }
  return b;
}

// The pseudo-inverse of a matrix of full rank.
Matrix pseudo_inverse(const Matrix& a) {
  Matrix b = transposed(a);
  return a.rows >= a.columns ? product(inverse(product(b, a)), b) : product(b, inverse(product(a, b)));
}

// The singular values, falling, by rotations of Jacobi.
std::vector<double> singular_values(const Matrix& given) {
  Matrix a = given.rows < given.columns ? product(given, transposed(given)) : product(transposed(given), given);
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::int64_t p = 0; p < a.rows; ++p)
      for (std::int64_t q = p + 1; q < a.rows; ++q) {
        if (a(p, q) == 0) continue;
        double angle = 0.5 * std::atan2(2 * a(p, q), a(p, p) - a(q, q));
        Matrix turn = identity(a.rows);
        turn(p, p) = turn(q, q) = std::cos(angle);
        turn(p, q) = -std::sin(angle);
        turn(q, p) = std::sin(angle);
        a = product(transposed(turn), product(a, turn));
      }
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.rows; ++i) values.push_back(std::sqrt(std::max(a(i, i), 0.0)));
  std::sort(values.rbegin(), values.rend());
  return values;
}

// By its series, after halving.
Matrix exponential(Matrix a) {
  for (double& value : a.values) value /= 256;
  Matrix sum = identity(a.rows), term = sum;
  for (int n = 1; n < 20; ++n) {
    term = product(term, a);
    for (double& value : term.values) value /= n;
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += term.values[i];
  }
  for (int step = 0; step < 8; ++step) sum = product(sum, sum);
  return sum;
}

// Added to drawn elements, it makes every square part far from singular, with distinct singular values; the pivots are
// not on the diagonal.
double shift(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
  std::int64_t size = std::min(rows, columns);
  return i < size && j < size && (i + 1) % size == j ? static_cast<double>(3 * std::max(rows, columns) + 6 * i) : 0;
}

Tensor shifted(const Tensor& x) {
  std::int64_t rows = x.size(-2), columns = x.size(-1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(shift(i, j, rows, columns));
  return x + to(tensor(values, {rows, columns}), x.dtype());
}

std::vector<Matrix> shifted(const Array& x) {
  std::vector<Matrix> all = matrices_of(x);
  for (Matrix& a : all)
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < a.columns; ++j) a(i, j) += shift(i, j, a.rows, a.columns);
  return all;
}

using Results = std::vector<double>;

// The elements of a result for each matrix, with errors relative to the largest; zeros for matrices without elements.
Array together(const Shape& shape, const std::vector<Matrix>& matrices,
               const std::function<Results(const Matrix& a)>& f) {
  Array y{shape, {}};
  for (const Matrix& a : matrices) {
    Results part = f(a);
    y.values.insert(y.values.end(), part.begin(), part.end());
  }
  if (matrices.empty()) y.values.assign(static_cast<std::size_t>(shape.numel()), 0);
  double largest = 0;
  for (double value : y.values) largest = std::max(largest, std::abs(value));
  y.scales.assign(y.values.size(), largest);
  return y;
}

constexpr double ulps = 300;

struct Part {
  std::string name;
  int number;
  std::function<Tensor(const Tensor& x)> run;
  std::function<Shape(const Shape& x)> shape;
  std::function<Results(const Matrix& a)> reference;
  bool differentiable = true;
};

void add_part(std::vector<Row>& rows, const Part& part, const Shape& shape) {
  rows.push_back(
      {.name = part.name + " " + to_string(shape),
       .run = [=](auto x) { return part.run(shifted(x[0])); },
       .inputs = {{shape}},
       .reference = [=](const Arrays& x) { return together(part.shape(shape), shifted(x[0]), part.reference); },
       .ulps = ulps,
       .dtypes = dtypes,
       .differentiable = part.differentiable,
       .reorders = part.name.starts_with("matrix_norm"),
       .attributes = {{"part", {static_cast<double>(part.number)}}}});
}

Results sums(const Matrix& a, bool of_columns) {
  Results all(static_cast<std::size_t>(of_columns ? a.columns : a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) all[static_cast<std::size_t>(of_columns ? j : i)] += std::abs(a(i, j));
  return all;
}

double norm_of(const Matrix& a, MatrixNorm norm) {
  auto largest = [](const Results& all) { return *std::max_element(all.begin(), all.end()); };
  auto smallest = [](const Results& all) { return *std::min_element(all.begin(), all.end()); };
  double squares = 0, total = 0;
  switch (norm) {
    case MatrixNorm::one: return largest(sums(a, true));
    case MatrixNorm::minus_one: return smallest(sums(a, true));
    case MatrixNorm::infinity: return largest(sums(a, false));
    case MatrixNorm::minus_infinity: return smallest(sums(a, false));
    case MatrixNorm::two: return largest(singular_values(a));
    case MatrixNorm::minus_two: return smallest(singular_values(a));
    case MatrixNorm::nuclear:
      for (double value : singular_values(a)) total += value;
      return total;
    default:
      for (double value : a.values) squares += value * value;
      return std::sqrt(squares);
  }
}

Part norm_part(MatrixNorm norm, bool keepdims) {
  return {"matrix_norm " + std::to_string(static_cast<int>(norm)), static_cast<int>(norm),
          [=](const Tensor& a) { return matrix_norm(a, norm, {.keepdims = keepdims}); },
          [=](const Shape& x) {
            return keepdims ? with_batch(x, {1, 1}) : with_batch(x, {});
          },
          [=](const Matrix& a) { return Results{norm_of(a, norm)}; }};
}

Shape same_shape(const Shape& x) { return x; }

// p l u again, and what l and u are: pivots are at least as large as what is below them.
Matrix eliminated(Matrix a) {
  for (std::int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k; i < a.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    for (std::int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
    for (std::int64_t i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      for (std::int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return a;
}

Results lower_of(const Matrix& a) {
  Matrix factors = eliminated(a), l(a.rows, std::min(a.rows, a.columns));
  for (std::int64_t i = 0; i < l.rows; ++i)
    for (std::int64_t j = 0; j < l.columns && j <= i; ++j) l(i, j) = i == j ? 1 : factors(i, j);
  return l.values;
}

Results upper_of(const Matrix& a) {
  Matrix factors = eliminated(a), u(std::min(a.rows, a.columns), a.columns);
  for (std::int64_t i = 0; i < u.rows; ++i)
    for (std::int64_t j = i; j < u.columns; ++j) u(i, j) = factors(i, j);
  return u.values;
}

std::vector<Part> rectangular_parts() {
  return {
      {"matrix_rank", 0, [](auto& a) { return matrix_rank(a); }, [](const Shape& x) { return with_batch(x, {}); },
       [](const Matrix& a) { return Results{static_cast<double>(std::min(a.rows, a.columns))}; }, false},
      {"pinv", 0, [](auto& a) { return pinv(a); },
       [](const Shape& x) {
         return with_batch(x, {x[-1], x[-2]});
       },
       [](const Matrix& a) { return pseudo_inverse(a).values; }},
      {"lu product", 0,
       [](auto& a) {
         auto [p, l, u] = lu(a);
         return matmul(p, matmul(l, u));
       },
       same_shape, [](const Matrix& a) { return a.values; }},
      {"lu l", 1, [](auto& a) { return lu(a).l; },
       [](const Shape& x) {
         return with_batch(x, {x[-2], std::min(x[-2], x[-1])});
       },
       lower_of},
      {"lu u", 2, [](auto& a) { return lu(a).u; },
       [](const Shape& x) {
         return with_batch(x, {std::min(x[-2], x[-1]), x[-1]});
       },
       upper_of},
  };
}

// The exponential of a part of the drawn elements, since it grows fast.
Row matrix_exp_row(const Shape& shape, double scale) {
  return {.name = "matrix_exp " + to_string(shape),
          .run = [=](auto x) { return matrix_exp(x[0] * scale); },
          .inputs = {{shape}},
          .reference =
              [=](const Arrays& x) {
                return together(shape, matrices_of(x[0]), [&](Matrix a) {
                  for (double& value : a.values) value *= scale;
                  return exponential(a).values;
                });
              },
          .ulps = ulps,
          .dtypes = dtypes,
          .reorders = true,
          .attributes = {{"scale", {scale}}}};
}

// One matrix for all right sides, or one for each.
struct System {
  Shape a, b;
};

Array solutions(const System& s, const std::vector<Matrix>& inverses, const Array& right, const Shape& shape) {
  Shape columns = s.b;
  if (s.b.rank() == 1) columns.push_back(1);
  std::vector<Matrix> sides = matrices_of({columns, right.values, {}});
  std::size_t count = inverses.empty() || sides.empty() ? 0 : std::max(inverses.size(), sides.size());
  std::vector<Matrix> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(product(inverses[inverses.size() == 1 ? 0 : i], sides[sides.size() == 1 ? 0 : i]));
  return together(shape, all, [](const Matrix& x) { return x.values; });
}

Shape solution_shape(const System& s) {
  Shape shape = with_batch(s.a.rank() > s.b.rank() || s.b.rank() == 1 ? s.a : s.b, {s.a[-1]});
  if (s.b.rank() > 1) shape.push_back(s.b[-1]);
  return shape;
}

Row lstsq_row(const System& s) {
  return {.name = "lstsq " + to_string(s.a) + " " + to_string(s.b),
          .run = [](auto x) { return lstsq(shifted(x[0]), x[1]).solution; },
          .inputs = {{s.a}, {s.b}},
          .reference =
              [=](const Arrays& x) {
                std::vector<Matrix> inverses;
                for (const Matrix& a : shifted(x[0])) inverses.push_back(pseudo_inverse(a));
                return solutions(s, inverses, x[1], solution_shape(s));
              },
          .ulps = ulps,
          .dtypes = dtypes,
          .reorders = true};
}

Tensor dominant(const Tensor& x) { return x + eye(x.size(-1), {.dtype = x.dtype()}) * 6; }

Row cholesky_solve_row(const System& s, bool upper) {
  return {.name = "cholesky_solve " + to_string(s.a) + " " + to_string(s.b) + (upper ? " upper" : ""),
          .run = [=](auto x) { return cholesky_solve(dominant(x[0]), x[1], {.upper = upper}); },
          .inputs = {{s.a}, {s.b}},
          .reference =
              [=](const Arrays& x) {
                std::vector<Matrix> inverses;
                for (Matrix a : matrices_of(x[0])) {
                  for (std::int64_t i = 0; i < a.rows; ++i)
                    for (std::int64_t j = 0; j < a.columns; ++j) {
                      if (upper ? j < i : j > i) a(i, j) = 0;
                      if (i == j) a(i, j) += 6;
                    }
                  inverses.push_back(inverse(upper ? product(transposed(a), a) : product(a, transposed(a))));
                }
                return solutions(s, inverses, x[1], solution_shape(s));
              },
          .ulps = ulps,
          .dtypes = dtypes,
          .attributes = {{"upper", {upper ? 1.0 : 0.0}}}};
}

std::vector<MatrixNorm> norms() {
  using enum MatrixNorm;
  return {frobenius, nuclear, one, minus_one, two, minus_two, infinity, minus_infinity};
}

void add_rows(std::vector<Row>& rows) {
  for (MatrixNorm norm : norms())
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 3}, Shape{2, 4}, Shape{2, 3, 2}, Shape{0, 2, 3}})
      add_part(rows, norm_part(norm, shape.rank() == 3), shape);
  add_part(rows, norm_part(MatrixNorm::frobenius, false), {2, 0});
  add_part(rows, norm_part(MatrixNorm::nuclear, false), {0, 3});
  for (const Part& part : rectangular_parts())
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 3}, Shape{4, 2}, Shape{2, 4}, Shape{2, 4, 3}, Shape{0, 2, 3},
                               Shape{3, 0}, Shape{0, 2}, Shape{9, 9}})
      add_part(rows, part, shape);
  for (const System& s : {System{{3, 3}, {3}}, System{{4, 2}, {4, 2}}, System{{2, 3}, {2}}, System{{2, 4, 2}, {4, 1}},
                          System{{3, 2}, {2, 3, 2}}, System{{0, 3, 2}, {3, 2}}})
    rows.push_back(lstsq_row(s));
  for (bool upper : {false, true})
    for (const System& s : {System{{3, 3}, {3}}, System{{3, 3}, {3, 2}}, System{{2, 3, 3}, {3}},
                            System{{2, 2}, {3, 2, 2}}, System{{0, 2, 2}, {2, 1}}})
      rows.push_back(cholesky_solve_row(s, upper));
  for (double scale : {0.1, 1.0, 4.0})
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 3}, Shape{2, 2, 2}, Shape{0, 0}, Shape{0, 2, 2}})
      rows.push_back(matrix_exp_row(shape, scale));
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    std::int64_t batch = random_size(random, 1, 3), size = random_size(random, 1, 6), width = random_size(random, 1, 6);
    for (MatrixNorm norm : norms()) add_part(rows, norm_part(norm, false), {batch, size, width});
    for (const Part& part : rectangular_parts()) add_part(rows, part, {batch, size, width});
    rows.push_back(lstsq_row({{batch, size + width, width}, {batch, size + width, 2}}));
    rows.push_back(cholesky_solve_row({{batch, size, size}, {batch, size, width}}, trial == 1));
    rows.push_back(matrix_exp_row({batch, size, size}, 0.5));
  }
}

}  // namespace

const RowFamily decompositions_rows{add_rows, add_random_rows};

}  // namespace reel_test
