#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// The pattern of a matrix in compressed sparse rows (CSR): the entries of row i are offsets[i] to before offsets[i +
/// 1].
struct RowPattern {
  const std::int64_t* offsets;  ///< row_count + 1 elements
  const std::int32_t* columns;  ///< ascending in each row
  std::int64_t row_count, column_count, entry_count;
};

/// Why a pattern is invalid, and where.
struct PatternFault {
  enum Kind : std::uint8_t { none, first_offset, last_offset, falling_offset, column_range, column_order };
  Kind kind = none;
  std::int64_t row = 0, value = 0, before = 0;
};

/// Kernels for f32 or f64, all contiguous. `values` has one number for each entry.
struct SparseKernels {
  /// Checks the pattern that `offsets` (i64) and `columns` (i64) describe.
  PatternFault (*find_fault)(const View& offsets, const View& columns, std::int64_t column_count);
  /// out (rows, K) = A dense, for dense (columns, K).
  void (*product)(const View& out, const View& values, const View& dense, const RowPattern& pattern);
  /// out (columns, K) = Aᵀ dense, for dense (rows, K).
  void (*transposed_product)(const View& out, const View& values, const View& dense, const RowPattern& pattern);
  /// out = Σ_k left[i, k] right[j, k] for the entry at (i, j).
  void (*sampled_product)(const View& out, const View& left, const View& right, const RowPattern& pattern);
  /// The permutation 0 … n − 1 that sorts `indices` (n), i32 or i64 in [−row_count, row_count), by row, stably.
  /// `distinct`, one i64, gets the number of different rows.
  void (*order_rows)(const View& numbers, const View& distinct, const View& indices, std::int64_t row_count);
  /// The different rows, ascending, and the sum of the `values` (n, …) of each, of any floating dtype; halves are
  /// summed in f32.
  void (*segment_sum_rows)(const View& rows, const View& sums, const View& values, const View& indices,
                           const View& numbers, std::int64_t row_count);
};

}  // namespace reel::detail
