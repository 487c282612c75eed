#include <reel/sparse.h>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>

#include <limits>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../kernels/sparse.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../index/index_checks.h"
#include "../linear_algebra/multiplications.h"
#include "../registry.h"

namespace reel {

using namespace detail;

struct detail::CSRAccess {
  static CSRMatrix make(Tensor offsets, Tensor columns, Tensor values, const Shape& shape) {
    CSRMatrix matrix;
    matrix.offsets_ = std::move(offsets);
    matrix.columns_ = std::move(columns);
    matrix.values_ = std::move(values);
    matrix.row_count_ = shape[0];
    matrix.column_count_ = shape[1];
    return matrix;
  }
  static const Tensor& offsets(const CSRMatrix& matrix) { return matrix.offsets_; }
  static const Tensor& columns(const CSRMatrix& matrix) { return matrix.columns_; }
};

// Three ops that are each other's gradients.

namespace {

// The inputs of products with a sparse matrix, and of sampled ones of two dense matrices.
enum CsrInput : std::uint8_t { in_values, in_dense, in_offsets, in_columns, in_left = in_values, in_right = in_dense };

Tensor multiply(const Tensor& values, const Tensor& dense, const Tensor& offsets, const Tensor& columns,
                Location where);
Tensor multiply_transposed(const Tensor& values, const Tensor& dense, std::int64_t column_count, const Tensor& offsets,
                           const Tensor& columns, Location where);
Tensor sample(const Tensor& left, const Tensor& right, const Tensor& offsets, const Tensor& columns, Location where);

RowPattern pattern_of(const Call& call, std::int64_t column_count) {
  const View &offsets = call.input(in_offsets), &columns = call.input(in_columns);
  return {offsets.as<const std::int64_t>(), columns.as<const std::int32_t>(), offsets.numel - 1, column_count,
          columns.numel};
}

const SparseKernels& sparse_kernels(const Call& call) { return *kernels(call.output().device).sparse; }

}  // namespace

// csr_matmul: y = A(v) x;  dv_e = Σ_k d_ik x_jk for entry e at (i, j),  dx = A(v)ᵀ d

constexpr OpInfo csr_matmul_op{
    .name = "csr_matmul",
    .forward =
        [](Call& call) {
          count_products(call.input(0), call.output().dims[1]);
          sparse_kernels(call).product(call.output(), call.input(0), call.input(1),
                                       pattern_of(call, call.input(1).dims[0]));
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &offsets = g.saved_input(in_offsets), &columns = g.saved_input(in_columns);
          if (g.wants(in_values))
            g.accumulate(in_values, sample(d, g.saved_input(in_dense), offsets, columns, g.where()));
          if (g.wants(in_dense))
            g.accumulate(in_dense, multiply_transposed(g.saved_input(in_values), d, g.input_shape(in_dense)[0], offsets,
                                                       columns, g.where()));
        },
    .saves_input_for = {inputs({1}), inputs({0}), inputs({0, 1}), inputs({0, 1})},
};

// csr_transposed_matmul: y = A(v)ᵀ x;  dv_e = Σ_k x_ik d_jk,  dx = A(v) d

constexpr OpInfo csr_transposed_matmul_op{
    .name = "csr_transposed_matmul",
    .forward =
        [](Call& call) {
          count_products(call.input(0), call.output().dims[1]);
          sparse_kernels(call).transposed_product(call.output(), call.input(0), call.input(1),
                                                  pattern_of(call, call.output().dims[0]));
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &offsets = g.saved_input(in_offsets), &columns = g.saved_input(in_columns);
          if (g.wants(in_values))
            g.accumulate(in_values, sample(g.saved_input(in_dense), d, offsets, columns, g.where()));
          if (g.wants(in_dense))
            g.accumulate(in_dense, multiply(g.saved_input(in_values), d, offsets, columns, g.where()));
        },
    .saves_input_for = {inputs({1}), inputs({0}), inputs({0, 1}), inputs({0, 1})},
    .internal = true,
};

namespace {

// The row of each entry.
Tensor rows_of_entries(const Tensor& offsets, std::int64_t entry_count) {
  return searchsorted(offsets, arange(entry_count, {.dtype = DType::i64, .device = offsets.device()}),
                      {.right = true}) -
         1;
}

// The gradient of a product whose x may get its gradient by rows: an entry e of the matrix at (i, j) adds v_e d_i to row
// j, or v_e d_j to row i of a transposed product.
template <const OpInfo& whole, bool transposed>
void product_gradient_by_rows(Gradient& g) {
  if (!g.wants(in_dense) || !g.takes_rows(in_dense)) return whole.gradient(g);
  const Tensor &d = g.output(), &values = g.saved_input(in_values), &offsets = g.saved_input(in_offsets),
               &columns = g.saved_input(in_columns);
  if (g.wants(in_values)) {
    const Tensor& x = g.saved_input(in_dense);
    g.accumulate(in_values,
                 transposed ? sample(x, d, offsets, columns, g.where()) : sample(d, x, offsets, columns, g.where()));
  }
  Tensor rows = rows_of_entries(offsets, columns.numel()), across = to(columns, DType::i64);
  Tensor flowing = take(d, transposed ? across : rows, 0) * unsqueeze(values, 1);
  g.accumulate_rows(in_dense, transposed ? rows : across, flowing);
}

constexpr OpInfo by_rows(const OpInfo& whole, void (*gradient)(Gradient& g)) {
  OpInfo op = whole;
  op.gradient = gradient;
  op.internal = true;
  return op;
}

}  // namespace

constexpr OpInfo csr_matmul_by_rows_op = by_rows(csr_matmul_op, product_gradient_by_rows<csr_matmul_op, false>),
                 csr_transposed_matmul_by_rows_op =
                     by_rows(csr_transposed_matmul_op, product_gradient_by_rows<csr_transposed_matmul_op, true>);

// csr_sampled_matmul: y_e = Σ_k a_ik b_jk for entry e at (i, j);  da = A(d) b,  db = A(d)ᵀ a

constexpr OpInfo csr_sampled_matmul_op{
    .name = "csr_sampled_matmul",
    .forward =
        [](Call& call) {
          count_products(call.output(), call.input(0).dims[1]);
          sparse_kernels(call).sampled_product(call.output(), call.input(0), call.input(1),
                                               pattern_of(call, call.input(1).dims[0]));
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &offsets = g.saved_input(in_offsets), &columns = g.saved_input(in_columns);
          if (g.wants(in_left))
            g.accumulate(in_left, multiply(d, g.saved_input(in_right), offsets, columns, g.where()));
          if (g.wants(in_right))
            g.accumulate(in_right, multiply_transposed(d, g.saved_input(in_left), g.input_shape(in_right)[0], offsets,
                                                       columns, g.where()));
        },
    .saves_input_for = {inputs({1}), inputs({0}), inputs({0, 1}), inputs({0, 1})},
    .internal = true,
};

namespace {

Tensor multiply(const Tensor& values, const Tensor& dense, const Tensor& offsets, const Tensor& columns,
                Location where) {
  Tensor v = contiguous_if_needed(Arg(values, where)), x = contiguous_if_needed(Arg(dense, where));
  Shape shape{offsets.numel() - 1, x.size(1)};
  return invoke(csr_matmul_op, {&v, &x, &offsets, &columns}, {shape, x.dtype(), x.device()}, where);
}

Tensor multiply_transposed(const Tensor& values, const Tensor& dense, std::int64_t column_count, const Tensor& offsets,
                           const Tensor& columns, Location where) {
  Tensor v = contiguous_if_needed(Arg(values, where)), x = contiguous_if_needed(Arg(dense, where));
  Shape shape{column_count, x.size(1)};
  return invoke(csr_transposed_matmul_op, {&v, &x, &offsets, &columns}, {shape, x.dtype(), x.device()}, where);
}

Tensor sample(const Tensor& left, const Tensor& right, const Tensor& offsets, const Tensor& columns, Location where) {
  Tensor a = contiguous_if_needed(Arg(left, where)), b = contiguous_if_needed(Arg(right, where));
  Shape shape{columns.numel()};
  return invoke(csr_sampled_matmul_op, {&a, &b, &offsets, &columns}, {shape, a.dtype(), a.device()}, where);
}

void check_defined(const char* name, const CSRMatrix& matrix, Location where) {
  if (!matrix.defined()) fail<Error>(name, where, "the sparse matrix is undefined: it was never given a value");
}

}  // namespace

Tensor matmul(const CSRMatrix& a, const Arg& x, CSRMatmulOptions options) {
  const char* name = csr_matmul_op.name;
  Location where = x.location();
  check_defined(name, a, where);
  const Tensor &dense = tensor_of(name, x), &offsets = CSRAccess::offsets(a), &columns = CSRAccess::columns(a);
  OpScope caller(where, name);
  check_same_device(name, a.values(), dense, where);
  Shape shape = a.shape();
  std::int64_t inner = shape[options.transposed ? 0 : 1];
  if (dense.rank() != 1 && dense.rank() != 2)
    fail<ShapeError>(name, where, "multiplies by a vector or a matrix, not by {}", describe(dense));
  if (dense.size(0) != inner)
    fail<ShapeError>(name, where, "inner sizes differ: the sparse matrix {}{}, x {}", to_string(shape),
                     options.transposed ? " transposed" : "", to_string(dense.shape()));
  DType dtype = promote(a.values().dtype(), dense.dtype()), wide = size_of(dtype) == 2 ? DType::f32 : dtype;
  Tensor values = to_if_needed(a.values(), wide),
         operand = to_if_needed(dense.rank() == 1 ? unsqueeze(dense, 1) : dense, wide);
  values = contiguous_if_needed(Arg(values, where));
  operand = contiguous_if_needed(Arg(operand, where));
  const OpInfo& op = options.transposed
                         ? options.row_gradient ? csr_transposed_matmul_by_rows_op : csr_transposed_matmul_op
                     : options.row_gradient ? csr_matmul_by_rows_op
                                            : csr_matmul_op;
  Shape result{shape[options.transposed ? 1 : 0], operand.size(1)};
  Tensor y = invoke(op, {&values, &operand, &offsets, &columns}, {result, operand.dtype(), operand.device()}, where);
  return to_if_needed(dense.rank() == 1 ? squeeze(y, 1) : y, dtype);
}

// The following functions are composed of ops: sorting and counting of indices, and moving of values.

namespace {

void check_matrix_shape(const char* name, const Shape& shape, Location where) {
  if (shape.rank() != 2 || shape[0] < 0 || shape[1] < 0)
    fail<ShapeError>(name, where, "the shape of a matrix has two sizes of at least 0, not {}", to_string(shape));
  if (shape[1] > std::numeric_limits<std::int32_t>::max())
    fail<ShapeError>(name, where, "there can be fewer than 2^31 columns, not {}", shape[1]);
}

void check_values(const char* name, const Tensor& values, const Tensor& indices, Location where) {
  check_floating(name, values, where);
  if (values.rank() != 1 || indices.rank() != 1 || values.numel() != indices.numel())
    fail<ShapeError>(name, where, "the columns {} and the values {} are not two vectors of one size",
                     to_string(indices.shape()), to_string(values.shape()));
  check_same_device(name, values, indices, where);
}

// The offsets of the rows, from the row of each entry, in ascending order.
Tensor offsets_of(const Tensor& rows, std::int64_t row_count) {
  return searchsorted(rows, arange(row_count + 1, {.dtype = DType::i64, .device = rows.device()}));
}

[[noreturn]] void fail_pattern(const PatternFault& fault, const Tensor& columns, const Shape& shape, Location where) {
  const char* name = "csr_matrix";
  switch (fault.kind) {
    case PatternFault::first_offset: fail<IndexError>(name, where, "the first row offset is {}, not 0", fault.value);
    case PatternFault::falling_offset:
      fail<IndexError>(name, where, "row offsets fall from {} to {} at row {}", fault.before, fault.value, fault.row);
    case PatternFault::last_offset:
      fail<IndexError>(name, where, "the last row offset is {}, but there are {} entries", fault.value,
                       columns.numel());
    case PatternFault::column_range:
      fail<IndexError>(name, where, "column {} in row {} is out of range for {}", fault.value, fault.row,
                       to_string(shape));
    default:
      fail<IndexError>(name, where,
                       "the columns of row {} do not rise: {} comes after {}; csr_from_coordinates takes any order",
                       fault.row, fault.value, fault.before);
  }
}

}  // namespace

CSRMatrix csr_matrix(const Arg& row_offsets, const Arg& columns, const Arg& values, const Shape& shape) {
  const char* name = "csr_matrix";
  const Tensor &offsets = tensor_of(name, row_offsets), &places = tensor_of(name, columns),
               &numbers = tensor_of(name, values);
  Location where = row_offsets.location();
  OpScope caller(where, name);
  check_matrix_shape(name, shape, where);
  check_index_dtype(name, offsets, where);
  check_index_dtype(name, places, where);
  check_values(name, numbers, places, where);
  check_same_device(name, offsets, places, where);
  if (offsets.rank() != 1 || offsets.numel() - 1 != shape[0])
    fail<ShapeError>(name, where, "a matrix {} wants {} row offsets, one more than rows, not {}", to_string(shape),
                     shape[0] + 1, to_string(offsets.shape()));
  Tensor own_offsets = to(offsets, DType::i64);
  Tensor wide = contiguous_if_needed(to_if_needed(places, DType::i64));
  wait_for(own_offsets, where);
  wait_for(wide, where);
  PatternFault fault = kernels(offsets.device()).sparse->find_fault(own_offsets.body(), wide.body(), shape[1]);
  if (fault.kind != PatternFault::none) fail_pattern(fault, places, shape, where);
  return CSRAccess::make(std::move(own_offsets), to_if_needed(wide, DType::i32), numbers, shape);
}

CSRMatrix csr_from_coordinates(const Arg& rows, const Arg& columns, const Arg& values, const Shape& shape) {
  const char* name = "csr_from_coordinates";
  const Tensor &down = tensor_of(name, rows), &across = tensor_of(name, columns), &numbers = tensor_of(name, values);
  Location where = rows.location();
  OpScope caller(where, name);
  check_matrix_shape(name, shape, where);
  check_index_dtype(name, down, where);
  check_index_dtype(name, across, where);
  check_values(name, numbers, across, where);
  check_same_device(name, down, across, where);
  if (down.shape() != across.shape())
    fail<ShapeError>(name, where, "the rows {} and the columns {} are not two vectors of one size",
                     to_string(down.shape()), to_string(across.shape()));
  if (shape[1] > 0 && shape[0] > std::numeric_limits<std::int64_t>::max() / shape[1])
    fail<ShapeError>(name, where, "a matrix {} has more elements than can be numbered", to_string(shape));
  auto checked = [&](const Tensor& indices, int axis) {
    std::int64_t bad;
    if (!are_within(name, indices, shape[axis], bad, where))
      fail<IndexError>(name, where, "index {} is out of range for axis {} of {}", bad, axis, to_string(shape));
    Tensor wide = to_if_needed(indices, DType::i64);
    return reel::where(wide < 0, wide + shape[axis], wide);
  };
  Tensor places = checked(down, 0) * shape[1] + checked(across, 1);
  std::int64_t count = places.numel();
  if (count == 0)
    return CSRAccess::make(zeros({shape[0] + 1}, {.dtype = DType::i64, .device = places.device()}),
                           to_if_needed(places, DType::i32), numbers, shape);
  auto [sorted, order] = sort(places);
  Tensor is_new = concat({ones({1}, {.dtype = DType::boolean, .device = places.device()}),
                          slice(sorted, 0, 1) != slice(sorted, 0, 0, count - 1)});
  Tensor distinct = masked_select(sorted, is_new), arranged = take(numbers, order, 0);
  if (distinct.numel() != count)
    arranged = segment_sum(arranged, cumsum(to(is_new, DType::i64), 0) - 1, distinct.numel());
  return CSRAccess::make(offsets_of(floor_divide(distinct, shape[1]), shape[0]),
                         to_if_needed(mod(distinct, shape[1]), DType::i32), arranged, shape);
}

CSRMatrix csr_from_dense(const Arg& x) {
  const char* name = "csr_from_dense";
  const Tensor& dense = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  check_floating(name, dense, where);
  check_matrix_shape(name, dense.shape(), where);
  Tensor places = nonzero(dense);
  return CSRAccess::make(offsets_of(select(places, 1, 0), dense.size(0)),
                         to_if_needed(select(places, 1, 1), DType::i32), masked_select(dense, dense != 0),
                         dense.shape());
}

Tensor to_dense(const CSRMatrix& matrix, Location where) {
  check_defined("to_dense", matrix, where);
  OpScope caller(where, "to_dense");
  const Tensor& values = matrix.values();
  Tensor rows = rows_of_entries(CSRAccess::offsets(matrix), values.numel());
  Tensor nothing = zeros(matrix.shape(), {.dtype = values.dtype(), .device = values.device()});
  return index_put(nothing, {rows, CSRAccess::columns(matrix)}, values, {.accumulate = true});
}

CSRMatrix select_rows(const CSRMatrix& matrix, const Arg& indices) {
  const char* name = "select_rows";
  const Tensor& at = tensor_of(name, indices);
  Location where = indices.location();
  check_defined(name, matrix, where);
  OpScope caller(where, name);
  check_index_dtype(name, at, where);
  if (at.rank() != 1) fail<ShapeError>(name, where, "the indices {} are not a vector", describe(at));
  const Tensor& offsets = CSRAccess::offsets(matrix);
  check_same_device(name, offsets, at, where);
  std::int64_t row_count = matrix.shape()[0], bad;
  if (!are_within(name, at, row_count, bad, where))
    fail<IndexError>(name, where, "index {} is out of range for the rows of {}", bad, to_string(matrix.shape()));
  Tensor wide = to_if_needed(at, DType::i64), rows = reel::where(wide < 0, wide + row_count, wide);
  Tensor starts = take(offsets, rows, 0), counts = take(offsets, rows + 1, 0) - starts;
  Tensor own_offsets = concat({zeros({1}, {.dtype = DType::i64, .device = at.device()}), cumsum(counts, 0)});
  std::int64_t entry_count = select(own_offsets, 0, -1).item<std::int64_t>();
  // Entry e of row r comes from entry starts[r] + (e − own_offsets[r]).
  Tensor entries = arange(entry_count, {.dtype = DType::i64, .device = at.device()}) +
                   take(starts - slice(own_offsets, 0, 0, at.numel()), rows_of_entries(own_offsets, entry_count), 0);
  return CSRAccess::make(std::move(own_offsets), take(CSRAccess::columns(matrix), entries, 0),
                         take(matrix.values(), entries, 0), {at.numel(), matrix.shape()[1]});
}

Tensor CSRMatrix::row_offsets(Location where) const {
  check_defined("row_offsets", *this, where);
  return copy(Arg(offsets_, where));
}

Tensor CSRMatrix::column_indices(Location where) const {
  check_defined("column_indices", *this, where);
  return to(Arg(columns_, where), DType::i64);
}

CSRMatrix CSRMatrix::with_values(const Arg& values) const {
  Location where = values.location();
  check_defined("with_values", *this, where);
  const Tensor& other = tensor_of("with_values", values);
  check_values("with_values", other, columns_, where);
  return CSRAccess::make(offsets_, columns_, other, shape());
}

OpList detail::sparse_ops() {
  static constexpr const OpInfo* ops[] = {&csr_matmul_op, &csr_transposed_matmul_op, &csr_matmul_by_rows_op,
                                          &csr_transposed_matmul_by_rows_op, &csr_sampled_matmul_op};
  return ops;
}

}  // namespace reel
