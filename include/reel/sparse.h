#pragma once

#include <reel/tensor.h>

namespace reel {

namespace detail {
struct CSRAccess;
}

/// A sparse matrix in compressed rows: of each row the columns that are stored, in rising order, and their values. The
/// values are a tensor like any other and may be a parameter or tracked; what is stored where never changes. Copies share
/// everything. `CSRMatrix{}` is undefined.
class CSRMatrix {
 public:
  CSRMatrix() = default;

  bool defined() const { return values_.defined(); }
  Shape shape() const { return {row_count_, column_count_}; }
  /// How many elements are stored.
  std::int64_t entry_count() const { return values_.defined() ? values_.numel() : 0; }
  /// Of the stored elements, row by row: (entries).
  const Tensor& values() const { return values_; }
  /// Where each row starts among the entries, and the last one ends: (rows + 1), i64. A copy.
  Tensor row_offsets(Location where = Location::here()) const;
  /// The column of each entry: (entries), i64. A copy.
  Tensor column_indices(Location where = Location::here()) const;

  /// The same pattern with other values: (entries), of any floating dtype. Throws: ShapeError; DTypeError.
  CSRMatrix with_values(const Arg& values) const;

 private:
  friend struct detail::CSRAccess;
  Tensor offsets_;  // (rows + 1), i64
  Tensor columns_;  // (entries), i32
  Tensor values_;
  std::int64_t row_count_ = 0, column_count_ = 0;
};

/// Row i of a matrix of this shape (rows, columns) has the entries row_offsets[i] to before row_offsets[i + 1], whose
/// columns rise: row_offsets (rows + 1), columns (entries), both of i32 or i64; values (entries), floating. The indices
/// are copied, the values are not.
/// Throws: ShapeError unless the sizes fit, for 2³¹ columns or more; DTypeError; IndexError for offsets that fall, do not
/// start at 0 or do not end at the number of entries, and for columns that are out of range, repeated or not in order.
/// Source: PyTorch's sparse_csr_tensor.
CSRMatrix csr_matrix(const Arg& row_offsets, const Arg& columns, const Arg& values, const Shape& shape);

/// Has values[n] at (rows[n], columns[n]), in any order; values for one place are added up. All (N); the indices i32 or
/// i64, negative ones count from the end. Throws: ShapeError, also for 2⁶³ elements or more; DTypeError; IndexError for
/// one out of range. Source: SciPy's coo_matrix.
CSRMatrix csr_from_coordinates(const Arg& rows, const Arg& columns, const Arg& values, const Shape& shape);

/// The elements of a floating matrix that are not 0. Throws: ShapeError; DTypeError.
CSRMatrix csr_from_dense(const Arg& x);

/// All elements: (rows, columns), 0 where none is stored.
Tensor to_dense(const CSRMatrix& matrix, Location where = Location::here());

struct CSRMatmulOptions {
  /// Multiplies by the transposed matrix.
  bool transposed = false;
};

/// y = A x, or Aᵀ x: A (M, N) and x (N, K) or (N) → (M, K) or (M), dense. Gradients flow to the values, one for each entry,
/// and to x. The dtype is that in which the values and x meet; bf16 and f16 are summed in f32 and rounded once.
/// Throws: ShapeError unless the sizes fit; Error for an undefined matrix.
Tensor matmul(const CSRMatrix& a, const Arg& x, CSRMatmulOptions options = {});

}  // namespace reel
