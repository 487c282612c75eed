#pragma once

#include <cstdint>

#include "../lib/core/kernels/linear_algebra.h"
#include "../lib/core/target.h"

// What is left of linear algebra to a library of the device's maker. Matrices of a batch lie one behind the other, without
// gaps, and column by column. T is f32 or f64; there are matrices, and they are not empty. All is queued. What can go wrong
// writes a number for each matrix to `faults`: 0 if it did not.

namespace reel::detail {
inline namespace REEL_TARGET {

/// a (n, n) → its factors: L below the diagonal, U above; `pivots` (n), counted from 1, say which row changed places with
/// row 1, 2, ….
template <class T>
void factor_lu(T* a, std::int64_t n, std::int64_t count, int* pivots);
/// From these and the right sides (n, columns) to the solutions.
template <class T>
void solve_factored(const T* factors, const int* pivots, T* right, std::int64_t n, std::int64_t columns,
                    std::int64_t count);
/// Right sides (n, columns) → solutions. Of these alone the matrices lie row by row.
template <class T>
void solve_triangle(const T* a, T* right, std::int64_t n, std::int64_t columns, std::int64_t count,
                    TriangleAttributes triangle);
/// a (n, n) → u with uᵀ u = a, from the upper triangle to the upper triangle.
template <class T>
void factor_cholesky(T* a, std::int64_t n, std::int64_t count, int* faults);
/// a (rows, n), rows ≥ n → r in the upper triangle, and below it what, with `scales` (n), `unfold_q` makes q (rows, n) of.
template <class T>
void factor_qr(T* a, T* scales, std::int64_t rows, std::int64_t n, std::int64_t count);
template <class T>
void unfold_q(T* a, const T* scales, std::int64_t rows, std::int64_t n, std::int64_t count);
/// a (rows, n), rows ≥ n → u (rows, n), s (n), vᵀ (n, n). Destroys a.
void factor_svd(double* a, double* u, double* s, double* vt, std::int64_t rows, std::int64_t n, std::int64_t count,
                int* faults);
/// a (n, n), its lower triangle → its eigenvectors; `values` (n), rising.
void factor_eigh(double* a, double* values, std::int64_t n, std::int64_t count, int* faults);

}  // namespace REEL_TARGET
}  // namespace reel::detail
