#pragma once

#include <cstdint>

#include "../../lib/core/target.h"
#include "../../lib/kernels/linear_algebra.h"

// Linear algebra by a library of the device's vendor. The matrices of a batch are contiguous and column-major. T is f32
// or f64; there is at least one matrix, and none is empty. All functions queue their work. Functions that can fail write a
// code for each matrix to `faults`: 0 for success.

namespace reel::detail::inline REEL_TARGET {

/// a (rows, n) → its factors: L below the diagonal, U above; `pivots` (min(rows, n)), counted from 1, are the rows with
/// which rows 1, 2, … were exchanged.
template <class T>
void factor_lu(T* a, std::int64_t rows, std::int64_t n, std::int64_t count, int* pivots);
/// Solves from these factors: right-hand sides (n, columns) → solutions.
template <class T>
void solve_factored(const T* factors, const int* pivots, T* right, std::int64_t n, std::int64_t columns,
                    std::int64_t count);
/// Right-hand sides (n, columns) → solutions. Only in this function the matrices are row-major.
template <class T>
void solve_triangle(const T* a, T* right, std::int64_t n, std::int64_t columns, std::int64_t count,
                    TriangleAttributes triangle);
/// a (n, n) → u with uᵀ u = a, from the upper triangle to the upper triangle.
template <class T>
void factor_cholesky(T* a, std::int64_t n, std::int64_t count, int* faults);
/// a (rows, n), rows ≥ n → r in the upper triangle, and below it the reflectors from which, with `scales` (n),
/// `unfold_q` computes q (rows, n).
template <class T>
void factor_qr(T* a, T* scales, std::int64_t rows, std::int64_t n, std::int64_t count);
template <class T>
void unfold_q(T* a, const T* scales, std::int64_t rows, std::int64_t n, std::int64_t count);
/// a (rows, n), rows ≥ n → u (rows, n), s (n), vᵀ (n, n). Destroys a.
void factor_svd(double* a, double* u, double* s, double* vt, std::int64_t rows, std::int64_t n, std::int64_t count,
                int* faults);
/// a (n, n), its lower triangle → its eigenvectors; `values` (n), ascending.
void factor_eigh(double* a, double* values, std::int64_t n, std::int64_t count, int* faults);

}  // namespace reel::detail::inline REEL_TARGET
