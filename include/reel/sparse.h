#pragma once

#include <reel/tensor.h>

namespace reel {

namespace detail {
struct CSRAccess;
}

/// A sparse matrix in compressed sparse row (CSR) form: for each row the stored columns, in ascending order, and their
/// values. The values are an ordinary tensor and may be a parameter or tracked; the pattern of stored elements never
/// changes. Copies share everything. `CSRMatrix{}` is undefined.
class CSRMatrix {
 public:
  /// An undefined matrix.
  CSRMatrix() = default;

  /// True unless the matrix is undefined.
  bool defined() const { return values_.defined(); }
  /// The sizes (rows, columns).
  Shape shape() const { return {row_count_, column_count_}; }
  /// The number of stored elements; 0 for an undefined matrix.
  std::int64_t entry_count() const { return values_.defined() ? values_.numel() : 0; }
  /// The values of the stored elements, row by row: (entries).
  const Tensor& values() const { return values_; }
  /// The index of the entry where each row starts, and behind the last row the number of entries: (rows + 1), i64. A
  /// copy.
  Tensor row_offsets(Location where = Location::here()) const;
  /// The column of each entry: (entries), i64. A copy.
  Tensor column_indices(Location where = Location::here()) const;

  /// A matrix with this pattern and other values: (entries), of any floating dtype.
  /// Throws: ShapeError unless there are as many values as entries; DTypeError unless floating.
  CSRMatrix with_values(const Arg& values) const;

 private:
  friend struct detail::CSRAccess;
  Tensor offsets_;  // (rows + 1), i64
  Tensor columns_;  // (entries), i32
  Tensor values_;
  std::int64_t row_count_ = 0, column_count_ = 0;
};

/// Makes a sparse matrix of `shape` (rows, columns) from compressed rows: row i has the entries row_offsets[i] to
/// before row_offsets[i + 1], whose columns ascend: row_offsets (rows + 1), columns (entries), both of i32 or i64;
/// values (entries), floating. The indices are copied, the values are not.
/// Throws: ShapeError unless the sizes fit, and for 2³¹ columns or more; DTypeError for other dtypes; IndexError for
/// offsets that decrease, do not start at 0 or do not end at the number of entries, and for columns that are out of
/// range, repeated or not in order.
/// Source: PyTorch's sparse_csr_tensor.
CSRMatrix csr_matrix(const Arg& row_offsets, const Arg& columns, const Arg& values, const Shape& shape);

/// Makes a sparse matrix of `shape` (rows, columns) with values[n] at (rows[n], columns[n]), in any order; values at
/// one position are added up. rows, columns, values: (N); the indices i32 or i64, negative ones count from the end.
/// Throws: ShapeError unless the sizes fit, and for 2⁶³ elements or more; DTypeError for other dtypes; IndexError for
/// an index out of range.
/// Source: SciPy's coo_matrix.
CSRMatrix csr_from_coordinates(const Arg& rows, const Arg& columns, const Arg& values, const Shape& shape);

/// Makes a sparse matrix of the elements of a dense floating matrix x (rows, columns) that are not 0.
/// Throws: ShapeError for another rank; DTypeError unless floating.
CSRMatrix csr_from_dense(const Arg& x);

/// Makes a sparse matrix of rows of another one, such as those of a mini-batch: row n is row indices[n] of `matrix`
/// (rows, columns): indices (N) of i32 or i64, negative ones count from the end, repeated ones are copied → (N, columns).
/// Gradients flow to the values.
/// Throws: IndexError for an index out of range; ShapeError unless the indices are a vector; DTypeError for other
/// dtypes; Error for an undefined matrix; DeviceError.
CSRMatrix select_rows(const CSRMatrix& matrix, const Arg& indices);

/// Makes a dense tensor (rows, columns) of a sparse matrix, 0 where no element is stored.
/// Throws: Error for an undefined matrix.
Tensor to_dense(const CSRMatrix& matrix, Location where = Location::here());

/// Options of `matmul` of a sparse matrix.
struct CSRMatmulOptions {
  /// Multiplies by the transposed matrix. Default false.
  bool transposed = false;
  /// Whether `Tape::backward` puts the gradient of an x that is a parameter into its row_grad(): only the rows that an
  /// entry of the matrix multiplies, which optimisers then update without touching others. Accumulated with a dense
  /// gradient, and for `Tape::gradient`, the gradient is dense. Default false.
  bool row_gradient = false;
};

/// The product of a sparse matrix and a dense tensor: y = A x, or Aᵀ x: A (M, N) and x (N, K) or (N) → (M, K) or (M),
/// dense. Gradients flow to the values, one for each entry, and to x. The dtype is that in which the values and x are
/// combined; bf16 and f16 are summed in f32 and rounded once.
/// Throws: ShapeError unless the sizes fit; Error for an undefined matrix.
Tensor matmul(const CSRMatrix& a, const Arg& x, CSRMatmulOptions options = {});

}  // namespace reel
