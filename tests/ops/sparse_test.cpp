#include <reel/debug/gradcheck.h>
#include <reel/reel.h>

#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

Tensor integers(std::initializer_list<std::int64_t> values) { return tensor(std::vector<std::int64_t>(values)); }

CSRMatrix small_matrix(DType dtype = f32) {
  return csr_matrix(integers({0, 2, 2, 3}), integers({0, 3, 1}), arange(3, {.dtype = dtype}) + 1, {3, 4});
}

}  // namespace

TEST_CASE("a sparse matrix keeps its pattern to itself and shares its values") {
  Tensor offsets = integers({0, 1, 2}), columns = integers({1, 0}), values = tensor({2.0f, 3.0f});
  CSRMatrix matrix = csr_matrix(offsets, columns, values, {2, 2});
  columns.write<std::int64_t>()[0] = 1'000'000;
  matrix.column_indices().write<std::int64_t>()[0] = -7;
  matrix.row_offsets().write<std::int64_t>()[1] = 50;
  values.write<float>()[0] = 5;
  CHECK(matrix.column_indices().to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
  CHECK(matrix.row_offsets().to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 1, 2});
  CHECK(to_dense(matrix).to_vector<float>() == std::vector<float>{0, 5, 3, 0});
  CHECK(to_string(matrix.shape()) == "(2, 2)");
  CHECK(matrix.entry_count() == 2);
  CHECK_FALSE(CSRMatrix().defined());
  CHECK(CSRMatrix().entry_count() == 0);
}

TEST_CASE("indices of a sparse matrix may be i32") {
  CSRMatrix matrix = csr_matrix(to(integers({0, 2}), i32), to(integers({0, 2}), i32), tensor({1.0f, 2.0f}), {1, 3});
  CHECK(to_dense(matrix).to_vector<float>() == std::vector<float>{1, 0, 2});
  matrix = csr_from_coordinates(to(integers({0, -1}), i32), integers({2, 0}), tensor({1.0f, 2.0f}), {2, 3});
  CHECK(to_dense(matrix).to_vector<float>() == std::vector<float>{0, 0, 1, 2, 0, 0});
}

TEST_CASE("stored zeros stay stored, and what is not stored multiplies nothing") {
  CSRMatrix matrix = small_matrix().with_values(tensor({0.0f, 1.0f, 2.0f}));
  CHECK(matrix.entry_count() == 3);
  Tensor x = tensor({NAN, 1.0f, HUGE_VALF, 4.0f});
  std::vector<float> y = matmul(matrix, x).to_vector<float>();
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 0);
  CHECK(y[2] == 2);
  CHECK(csr_from_dense(tensor({{NAN, 0.0f}, {-0.0f, 1.0f}})).entry_count() == 2);
}

TEST_CASE("a sparse product meets other dtypes as a dense one does") {
  CHECK(matmul(small_matrix(f32), ones({4}, {.dtype = f64})).dtype() == f64);
  CHECK(matmul(small_matrix(bf16), ones({4}, {.dtype = f32})).dtype() == f32);
  CHECK(matmul(small_matrix(f16), ones({4}, {.dtype = i64})).dtype() == f16);
}

TEST_CASE("gradients of a sparse product equal those of the dense one, to second order") {
  manual_seed(5);
  Tensor dense = randn({5, 7}, {.dtype = f64});
  CSRMatrix pattern = csr_from_dense(where(dense > 0.3, dense, 0));
  Tensor values = copy(pattern.values());
  for (bool transposed : {false, true}) {
    Tensor x = randn({transposed ? 5 : 7, 3}, {.dtype = f64});
    auto both_orders = [&](bool sparse) {
      Tape outer;
      outer.watch(values);
      outer.watch(x);
      std::array<Tensor, 2> first = [&] {
        Tape inner;
        CSRMatrix matrix = pattern.with_values(values);
        Tensor y = sparse ? matmul(matrix, x, {.transposed = transposed})
                          : matmul(transposed ? transpose(to_dense(matrix)) : to_dense(matrix), x);
        return inner.gradient(sum(square(y) * y), values, x);
      }();
      auto [by_values, by_x] = outer.gradient(sum(square(first[0])) + sum(first[1] * x), values, x);
      return std::vector<Tensor>{first[0], first[1], by_values, by_x};
    };
    std::vector<Tensor> found = both_orders(true), expected = both_orders(false);
    // Numbers up to some thousand, after a few dozen roundings.
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(max(abs(found[i] - expected[i])).item() <= 1e-12 * (1 + max(abs(expected[i])).item()));
  }
}

TEST_CASE("rows of a sparse matrix equal rows of the dense one, with gradients to both orders") {
  manual_seed(6);
  Tensor dense = randn({5, 4}, {.dtype = f64});
  dense = where(dense > 0.2, dense, 0) * unsqueeze(tensor({1.0, 0.0, 1.0, 1.0, 1.0}), 1);  // row 1 is empty
  CSRMatrix matrix = csr_from_dense(dense);
  for (DType dtype : {i64, i32})
    for (const Tensor& given : {integers({4, 1, -5, 4}), integers({1, 1}), integers({})}) {
      CSRMatrix found = select_rows(matrix, to(given, dtype));
      Tensor expected = take(dense, given, 0);
      CHECK(found.shape() == expected.shape());
      CHECK(to_dense(found).to_vector<double>() == expected.to_vector<double>());
      // csr_matrix checks the result.
      csr_matrix(found.row_offsets(), found.column_indices(), found.values(), found.shape());
    }
  auto f = [&](std::span<const Tensor> values) {
    return square(select_rows(matrix.with_values(values[0]), integers({4, 1, 0, 4})).values()) * 2;
  };
  CHECK(debug::gradcheck(f, {matrix.values()}));
  CHECK(debug::gradgradcheck(f, {matrix.values()}));
}

TEST_CASE("rows of a sparse matrix that do not fit are refused") {
  CHECK_THAT(error_of<IndexError>([] {
               select_rows(small_matrix(), integers({0, 3}));
             }),
             contains("select_rows: index 3 is out of range for the rows of (3, 4)"));
  CHECK_THAT(error_of<ShapeError>([] {
               select_rows(small_matrix(), zeros({1, 2}, {.dtype = i64}));
             }),
             contains("select_rows: the indices (1, 2) i64 are not a vector"));
  CHECK_THAT(error_of<DTypeError>([] { select_rows(small_matrix(), zeros({2})); }),
             contains("select_rows: indices are i32 or i64"));
  CHECK_THAT(error_of<Error>([] { select_rows(CSRMatrix(), integers({0})); }),
             contains("select_rows: the sparse matrix is undefined"));
}

TEST_CASE("values that are overwritten after a sparse product are noticed") {
  Tensor values = ones({3}), x = ones({4});
  CSRMatrix matrix = small_matrix().with_values(values);
  Tape tape;
  tape.watch(x);
  Tensor y = sum(matmul(matrix, x));
  values.write<float>()[0] = 3;
  CHECK_THAT(error_of<TapeError>([&] { tape.gradient(y, x); }), contains("csr_matmul: its gradient needs input 0"));
}

TEST_CASE("bad parts of a sparse matrix are refused") {
  Tensor offsets = integers({0, 2, 2, 3}), columns = integers({0, 3, 1}), values = ones({3});
  all_fail<IndexError>({
      Bad("csr_matrix: the first row offset is 1, not 0",
          [&] {
            csr_matrix(integers({1, 2, 2, 3}), columns, values, {3, 4});
          }),
      Bad("csr_matrix: row offsets fall from 2 to 1 at row 1",
          [&] {
            csr_matrix(integers({0, 2, 1, 3}), columns, values, {3, 4});
          }),
      Bad("csr_matrix: the last row offset is 9000000000, but there are 3 entries",
          [&] {
            csr_matrix(integers({0, 2, 2, 9'000'000'000}), columns, values, {3, 4});
          }),
      Bad("csr_matrix: column 4 in row 0 is out of range for (3, 4)",
          [&] {
            csr_matrix(offsets, integers({0, 4, 1}), values, {3, 4});
          }),
      Bad("csr_matrix: column -1 in row 2 is out of range for (3, 4)",
          [&] {
            csr_matrix(offsets, integers({0, 3, -1}), values, {3, 4});
          }),
      Bad("csr_matrix: the columns of row 0 do not rise: 3 comes after 3; csr_from_coordinates takes any order",
          [&] {
            csr_matrix(offsets, integers({3, 3, 1}), values, {3, 4});
          }),
      Bad("csr_from_coordinates: index 3 is out of range for axis 0 of (3, 4)",
          [&] {
            csr_from_coordinates(integers({0, 3, 1}), columns, values, {3, 4});
          }),
      Bad("csr_from_coordinates: index -5 is out of range for axis 1 of (3, 4)",
          [&] {
            csr_from_coordinates(columns - 1, integers({0, 3, -5}), values, {3, 4});
          }),
  });
  all_fail<ShapeError>({
      Bad("csr_matrix: the shape of a matrix has two sizes of at least 0, not (3,)",
          [&] { csr_matrix(offsets, columns, values, {3}); }),
      Bad("csr_matrix: the shape of a matrix has two sizes of at least 0, not (3, -4)",
          [&] {
            csr_matrix(offsets, columns, values, {3, -4});
          }),
      Bad("csr_matrix: there can be fewer than 2^31 columns, not 2147483648",
          [&] {
            csr_matrix(offsets, columns, values, {3, std::int64_t{1} << 31});
          }),
      Bad("csr_matrix: a matrix (2, 4) wants 3 row offsets, one more than rows, not (4,)",
          [&] {
            csr_matrix(offsets, columns, values, {2, 4});
          }),
      Bad("csr_matrix: the columns (3,) and the values (2,) are not two vectors of one size",
          [&] {
            csr_matrix(offsets, columns, ones({2}), {3, 4});
          }),
      Bad("csr_from_coordinates: the rows (4,) and the columns (3,) are not two vectors of one size",
          [&] {
            csr_from_coordinates(offsets, columns, values, {3, 4});
          }),
      Bad("csr_from_coordinates: the columns (1, 3) and the values (3,) are not two vectors of one size",
          [&] {
            csr_from_coordinates(columns, reshape(columns, {1, 3}), values, {3, 4});
          }),
      Bad("csr_from_coordinates: a matrix (9223372036854775807, 2) has more elements than can be numbered",
          [&] {
            csr_from_coordinates(columns, columns, values, {std::numeric_limits<std::int64_t>::max(), 2});
          }),
      Bad("csr_from_dense: the shape of a matrix has two sizes of at least 0, not (2, 2, 2)",
          [&] {
            csr_from_dense(ones({2, 2, 2}));
          }),
      Bad("with_values: the columns (3,) and the values (4,) are not two vectors of one size",
          [&] { small_matrix().with_values(ones({4})); }),
  });
  all_fail<DTypeError>({
      Bad("csr_matrix: indices are i32 or i64, not (4,) f32",
          [&] {
            csr_matrix(ones({4}), columns, values, {3, 4});
          }),
      Bad("csr_matrix: indices are i32 or i64, not (3,) bool",
          [&] {
            csr_matrix(offsets, to(columns, boolean), values, {3, 4});
          }),
      Bad("csr_matrix: takes a floating tensor, not (3,) i64",
          [&] {
            csr_matrix(offsets, columns, columns, {3, 4});
          }),
      Bad("csr_from_dense: takes a floating tensor, not (2, 2) i64",
          [&] {
            csr_from_dense(zeros({2, 2}, {.dtype = i64}));
          }),
  });
}

TEST_CASE("bad operands of a sparse product are refused") {
  CSRMatrix matrix = small_matrix();
  all_fail<ShapeError>({
      Bad("csr_matmul: inner sizes differ: the sparse matrix (3, 4), x (3, 2)",
          [&] {
            matmul(matrix, ones({3, 2}));
          }),
      Bad("csr_matmul: inner sizes differ: the sparse matrix (3, 4) transposed, x (4,)",
          [&] { matmul(matrix, ones({4}), {.transposed = true}); }),
      Bad("csr_matmul: multiplies by a vector or a matrix, not by () f32", [&] { matmul(matrix, ones({})); }),
      Bad("csr_matmul: multiplies by a vector or a matrix, not by (2, 4, 1) f32",
          [&] {
            matmul(matrix, ones({2, 4, 1}));
          }),
  });
  all_fail<Error>({
      Bad("csr_matmul: the sparse matrix is undefined", [&] { matmul(CSRMatrix(), ones({4})); }),
      Bad("to_dense: the sparse matrix is undefined", [&] { to_dense(CSRMatrix()); }),
      Bad("row_offsets: the sparse matrix is undefined", [&] { CSRMatrix().row_offsets(); }),
      Bad("column_indices: the sparse matrix is undefined", [&] { CSRMatrix().column_indices(); }),
      Bad("with_values: the sparse matrix is undefined", [&] { CSRMatrix().with_values(ones({4})); }),
  });
}

}  // namespace reel_test
