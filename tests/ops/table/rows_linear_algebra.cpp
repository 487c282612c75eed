#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/table/linear_algebra/matrix.h"

namespace reel_test {

using namespace reel;

namespace {

const std::vector<DType> dtypes{f32, f64};

// Added to drawn elements, it makes every square part far from singular, with distinct eigen- and singular values.
double shift(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) {
  return i == j ? static_cast<double>(3 * std::max(rows, columns) + 6 * i) : 0;
}

Tensor shifted(const Tensor& x) {
  if (x.rank() < 2) return x;
  std::int64_t rows = x.size(-2), columns = x.size(-1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(shift(i, j, rows, columns));
  return x + to(tensor(values, {rows, columns}), x.dtype());
}

Tensor shifted_symmetric(const Tensor& x) {
  Tensor a = shifted(x);
  return a + transpose(a);
}

std::vector<Matrix> shifted(const Array& x) {
  std::vector<Matrix> all = matrices_of(x);
  for (Matrix& a : all)
    for (std::int64_t i = 0; i < std::min(a.rows, a.columns); ++i) a(i, i) += shift(i, i, a.rows, a.columns);
  return all;
}

std::vector<Matrix> shifted_symmetric(const Array& x) {
  std::vector<Matrix> all = shifted(x);
  for (Matrix& a : all) {
    Matrix other = transposed(a);
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] += other.values[i];
  }
  return all;
}

// By elimination with pivots; `determinant` gets that of a.
Matrix eliminated(Matrix a, Matrix b, double& determinant) {
  determinant = 1;
  for (std::int64_t k = 0; k < a.rows; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k; i < a.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    if (pivot != k) determinant = -determinant;
    for (std::int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
    for (std::int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(pivot, j));
    determinant *= a(k, k);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      if (i == k) continue;
      double factor = a(i, k) / a(k, k);
      for (std::int64_t j = 0; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
      for (std::int64_t j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  return b;
}

double determinant_of(const Matrix& a) {
  double determinant;
  eliminated(a, identity(a.rows), determinant);
  return determinant;
}

Matrix triangle_of(const Matrix& a) {
  Matrix l(a.rows, a.rows);
  for (std::int64_t j = 0; j < a.rows; ++j)
    for (std::int64_t i = j; i < a.rows; ++i) {
      double rest = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) rest -= l(i, k) * l(j, k);
      l(i, j) = i == j ? std::sqrt(rest) : rest / l(j, j);
    }
  return l;
}

// The squares of r, by the modified Gram and Schmidt method.
Matrix squared_r(Matrix a) {
  std::int64_t size = std::min(a.rows, a.columns);
  Matrix r(size, a.columns);
  for (std::int64_t k = 0; k < size; ++k) {
    double norm = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) norm += a(i, k) * a(i, k);
    r(k, k) = norm;
    for (std::int64_t j = k + 1; j < a.columns; ++j) {
      double inner = 0;
      for (std::int64_t i = 0; i < a.rows; ++i) inner += a(i, k) * a(i, j);
      r(k, j) = inner * inner / norm;
      for (std::int64_t i = 0; i < a.rows; ++i) a(i, j) -= a(i, k) * inner / norm;
    }
  }
  return r;
}

struct Spectrum {
  std::vector<double> values;  // rising
  Matrix vectors;
};

// By Jacobi's rotations.
Spectrum spectrum_of(Matrix a) {
  Matrix v = identity(a.rows);
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::int64_t p = 0; p < a.rows; ++p)
      for (std::int64_t q = p + 1; q < a.rows; ++q) {
        if (a(p, q) == 0) continue;
        double angle = 0.5 * std::atan2(2 * a(p, q), a(p, p) - a(q, q)), c = std::cos(angle), s = std::sin(angle);
        Matrix turn = identity(a.rows);
        turn(p, p) = turn(q, q) = c;
        turn(p, q) = -s;
        turn(q, p) = s;
        a = product(transposed(turn), product(a, turn));
        v = product(v, turn);
      }
  std::vector<std::int64_t> order(static_cast<std::size_t>(a.rows));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) { return a(i, i) < a(j, j); });
  Spectrum spectrum{{}, Matrix(a.rows, a.rows)};
  for (std::int64_t j = 0; j < a.rows; ++j) {
    std::int64_t from = order[static_cast<std::size_t>(j)];
    spectrum.values.push_back(a(from, from));
    for (std::int64_t i = 0; i < a.rows; ++i) spectrum.vectors(i, j) = v(i, from);
  }
  return spectrum;
}

using Results = std::vector<double>;

// The elements of a result for each matrix, with errors relative to the largest.
Array together(const Shape& shape, const std::vector<Matrix>& matrices,
               const std::function<Results(const Matrix& a)>& f) {
  Array y{shape, {}};
  for (const Matrix& a : matrices) {
    Results part = f(a);
    y.values.insert(y.values.end(), part.begin(), part.end());
  }
  // Matrices without elements.
  if (matrices.empty())
    y.values.assign(static_cast<std::size_t>(shape.numel()), f(Matrix(0, 0)).empty() ? 0 : f(Matrix(0, 0))[0]);
  double largest = 0;
  for (double value : y.values) largest = std::max(largest, std::abs(value));
  y.scales.assign(y.values.size(), largest);
  return y;
}

// Factors are backward stable: their errors are some units of the largest element for each size, times the condition,
// here below 10; for vectors, times what the values lie apart, here at least some percent.
constexpr double ulps = 300, vector_ulps = 3000;

struct Part {
  std::string name;
  int number;
  std::function<Tensor(const Tensor& x)> run;
  std::function<Shape(const Shape& x)> shape;
  std::function<Results(const Matrix& a)> reference;
  bool symmetric = false;
  double ulps = reel_test::ulps;
};

void add_part(std::vector<Row>& rows, const Part& part, const Shape& shape) {
  rows.push_back({.name = part.name + " " + to_string(shape),
                  .run = [=](auto x) { return part.run(part.symmetric ? shifted_symmetric(x[0]) : shifted(x[0])); },
                  .inputs = {{shape}},
                  .reference =
                      [=](const Arrays& x) {
                        return together(part.shape(shape), part.symmetric ? shifted_symmetric(x[0]) : shifted(x[0]),
                                        part.reference);
                      },
                  .ulps = part.ulps,
                  .dtypes = dtypes,
                  // A sign is constant.
                  .differentiable = part.name != "slogdet sign",
                  // The columns beyond a square are those of a product.
                  .reorders = part.name.starts_with("qr") && shape[-1] > shape[-2],
                  .attributes = {{"part", {static_cast<double>(part.number)}}}});
}

Shape same_shape(const Shape& x) { return x; }
Shape batch_shape(const Shape& x) { return with_batch(x, {}); }
Shape value_shape(const Shape& x) { return with_batch(x, {std::min(x[-2], x[-1])}); }

Results squares(const Matrix& a) {
  Results values;
  for (double value : a.values) values.push_back(value * value);
  return values;
}

// Falling, and only the first.
Matrix leading_vectors(const Matrix& gram, std::int64_t count) {
  Spectrum spectrum = spectrum_of(gram);
  Matrix vectors(gram.rows, count);
  for (std::int64_t i = 0; i < gram.rows; ++i)
    for (std::int64_t j = 0; j < count; ++j) vectors(i, j) = spectrum.vectors(i, gram.rows - 1 - j);
  return vectors;
}

Results singular_values_of(const Matrix& a) {
  Results values = spectrum_of(a.rows < a.columns ? product(a, transposed(a)) : product(transposed(a), a)).values;
  std::reverse(values.begin(), values.end());
  for (double& value : values) value = std::sqrt(value);
  return values;
}

std::vector<Part> square_parts() {
  return {
      {"inv", 0, [](auto& a) { return inv(a); }, same_shape,
       [](const Matrix& a) {
         double determinant;
         return eliminated(a, identity(a.rows), determinant).values;
       }},
      {"det", 0, [](auto& a) { return det(a); }, batch_shape,
       [](const Matrix& a) { return Results{determinant_of(a)}; }},
      {"slogdet sign", 0, [](auto& a) { return slogdet(a).sign; }, batch_shape,
       [](const Matrix& a) { return Results{determinant_of(a) < 0 ? -1.0 : 1.0}; }},
      {"slogdet", 1, [](auto& a) { return slogdet(a).logabsdet; }, batch_shape,
       [](const Matrix& a) { return Results{std::log(std::abs(determinant_of(a)))}; }},
      {"logdet", 0, [](auto& a) { return logdet(a); }, batch_shape,
       [](const Matrix& a) { return Results{std::log(determinant_of(a))}; }},
      {"cholesky", 0, [](auto& a) { return cholesky(a); }, same_shape,
       [](const Matrix& a) { return triangle_of(a).values; }, true},
      {"eigh values", 0, [](auto& a) { return eigh(a).values; }, value_shape,
       [](const Matrix& a) { return spectrum_of(a).values; }, true},
      {"eigvalsh", 0, [](auto& a) { return eigvalsh(a); }, value_shape,
       [](const Matrix& a) { return spectrum_of(a).values; }, true},
      {"eigh vectors", 1, [](auto& a) { return square(eigh(a).vectors); }, same_shape,
       [](const Matrix& a) { return squares(spectrum_of(a).vectors); }, true, vector_ulps},
      {"eigh product", 2,
       [](auto& a) {
         auto [values, vectors] = eigh(a);
         return matmul(vectors * unsqueeze(values, -2), transpose(vectors));
       },
       same_shape, [](const Matrix& a) { return a.values; }, true},
  };
}

std::vector<Part> rectangular_parts() {
  return {
      {"qr product", 0,
       [](auto& a) {
         auto [q, r] = qr(a);
         return matmul(q, r);
       },
       same_shape, [](const Matrix& a) { return a.values; }},
      {"qr r", 1, [](auto& a) { return square(qr(a).r); },
       [](const Shape& x) {
         return with_batch(x, {std::min(x[-2], x[-1]), x[-1]});
       },
       [](const Matrix& a) { return squared_r(a).values; }},
      {"svd product", 0,
       [](auto& a) {
         auto [u, s, vh] = svd(a);
         return matmul(u * unsqueeze(s, -2), vh);
       },
       same_shape, [](const Matrix& a) { return a.values; }},
      {"svd values", 1, [](auto& a) { return svd(a).s; }, value_shape, singular_values_of},
      {"svdvals", 0, [](auto& a) { return svdvals(a); }, value_shape, singular_values_of},
      {"svd u", 2, [](auto& a) { return square(svd(a).u); },
       [](const Shape& x) {
         return with_batch(x, {x[-2], std::min(x[-2], x[-1])});
       },
       [](const Matrix& a) { return squares(leading_vectors(product(a, transposed(a)), std::min(a.rows, a.columns))); },
       false, vector_ulps},
      {"svd vh", 3, [](auto& a) { return square(svd(a).vh); },
       [](const Shape& x) {
         return with_batch(x, {std::min(x[-2], x[-1]), x[-1]});
       },
       [](const Matrix& a) {
         return squares(transposed(leading_vectors(product(transposed(a), a), std::min(a.rows, a.columns))));
       },
       false, vector_ulps},
  };
}

struct System {
  Shape a, b;
};

// One right side after the other, each with its matrix.
Array solutions(const System& s, const Array& given, const std::vector<Matrix>& matrices, const Array& right) {
  Shape columns = s.b;
  if (s.b.rank() == 1) columns.push_back(1);
  Shape shape;
  broadcast(with_batch(s.a, {}), with_batch(columns, {}), shape);
  int batch = shape.rank();
  shape.push_back(columns[-2]);
  shape.push_back(columns[-1]);
  Array whole{columns, right.values},
      y = make(shape, [&](const Index& i) {
        Matrix b(columns[-2], columns[-1]);
        Index at_b = i;
        for (std::int64_t row = 0; row < b.rows; ++row)
          for (std::int64_t column = 0; column < b.columns; ++column) {
            at_b[static_cast<std::size_t>(batch)] = row;
            at_b[static_cast<std::size_t>(batch) + 1] = column;
            b(row, column) = at(whole, at_b);
          }
        // The index of the matrix: an array of indices, broadcast like the matrices.
        Array numbers = make(with_batch(given.shape, {1, 1}), [n = 0.0](const Index&) mutable { return n++; });
        double determinant;
        Matrix x = eliminated(matrices[static_cast<std::size_t>(at(numbers, i))], b, determinant);
        return x(i[static_cast<std::size_t>(batch)], i[static_cast<std::size_t>(batch) + 1]);
      });
  if (s.b.rank() == 1) {
    Shape dropped;
    for (int axis = 0; axis + 1 < shape.rank(); ++axis) dropped.push_back(shape[axis]);
    y.shape = dropped;
  }
  double largest = 0;
  for (double value : y.values) largest = std::max(largest, std::abs(value));
  y.scales.assign(y.values.size(), largest);
  return y;
}

void add_solve(std::vector<Row>& rows, const System& s) {
  rows.push_back({.name = "solve " + to_string(s.a) + " " + to_string(s.b),
                  .run = [=](auto x) { return solve(shifted(x[0]), x[1]); },
                  .inputs = {{s.a}, {s.b}},
                  .reference = [=](const Arrays& x) { return solutions(s, x[0], shifted(x[0]), x[1]); },
                  .ulps = ulps,
                  .dtypes = dtypes});
}

void add_triangular(std::vector<Row>& rows, const System& s, const TriangularSolveOptions& options) {
  auto triangles = [=](const Array& x) {
    std::vector<Matrix> all = shifted(x);
    for (Matrix& a : all) {
      for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < a.columns; ++j) {
          if (options.upper ? j < i : j > i) a(i, j) = 0;
          if (options.unit_diagonal && i == j) a(i, j) = 1;
        }
      if (options.transposed) a = transposed(a);
    }
    return all;
  };
  auto flag = [](bool on) { return Attributes::Numbers{on ? 1.0 : 0.0}; };
  rows.push_back({.name = "triangular_solve " + to_string(s.a) + " " + to_string(s.b),
                  .run = [=](auto x) { return triangular_solve(shifted(x[0]), x[1], options); },
                  .inputs = {{s.a}, {s.b}},
                  .reference = [=](const Arrays& x) { return solutions(s, x[0], triangles(x[0]), x[1]); },
                  .ulps = vector_ulps,
                  .dtypes = dtypes,
                  .attributes = {{"upper", flag(options.upper)},
                                 {"transposed", flag(options.transposed)},
                                 {"unit_diagonal", flag(options.unit_diagonal)}}});
}

std::vector<TriangularSolveOptions> triangles() {
  std::vector<TriangularSolveOptions> all;
  for (bool upper : {false, true})
    for (bool transposed : {false, true})
      for (bool unit : {false, true}) all.push_back({.upper = upper, .transposed = transposed, .unit_diagonal = unit});
  return all;
}

void add_rows(std::vector<Row>& rows) {
  for (const Part& part : square_parts())
    for (const Shape& shape : {Shape{1, 1}, Shape{2, 2}, Shape{4, 4}, Shape{2, 3, 3}, Shape{0, 3, 3}, Shape{3, 0, 0},
                               Shape{2, 1, 2, 2}, Shape{18, 18}})
      add_part(rows, part, shape);
  for (const Part& part : rectangular_parts())
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 3}, Shape{4, 2}, Shape{2, 4}, Shape{2, 5, 3}, Shape{0, 2, 3},
                               Shape{3, 0}, Shape{0, 2}, Shape{7, 6}})
      add_part(rows, part, shape);
  for (const System& s :
       {System{{3, 3}, {3}}, System{{3, 3}, {3, 2}}, System{{2, 3, 3}, {3, 2}}, System{{2, 3, 3}, {3}},
        System{{3, 3}, {2, 3, 2}}, System{{2, 1, 2, 2}, {3, 2, 1}}, System{{0, 2, 2}, {2, 2}}, System{{2, 2}, {2, 0}},
        System{{0, 0}, {0, 3}}, System{{20, 20}, {20, 5}}})
    add_solve(rows, s);
  for (const TriangularSolveOptions& options : triangles())
    for (const System& s :
         {System{{3, 3}, {3}}, System{{2, 3, 3}, {3, 2}}, System{{0, 2, 2}, {2, 2}}, System{{0, 0}, {0, 3}}})
      add_triangular(rows, s, options);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    std::int64_t batch = random_size(random, 1, 3), size = random_size(random, 1, 6), width = random_size(random, 1, 6);
    for (const Part& part : square_parts()) add_part(rows, part, {batch, size, size});
    for (const Part& part : rectangular_parts()) add_part(rows, part, {batch, size, width});
    add_solve(rows, {{size, size}, {batch, size, width}});
    add_triangular(rows, {{batch, size, size}, {size, width}},
                   {.upper = trial == 0, .transposed = trial < 2, .unit_diagonal = trial == 1});
  }
}

}  // namespace

const RowFamily linear_algebra_rows{add_rows, add_random_rows};

}  // namespace reel_test
