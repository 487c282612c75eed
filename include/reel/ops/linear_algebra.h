#pragma once

#include <cstdint>
#include <optional>

#include <reel/tensor.h>

/// \file
/// Linear algebra of the matrices in the last two axes, each by itself; leading axes are a batch. f32 and f64 only. An
/// Error names the matrix of a batch that is singular, not positive definite, or holds NaN or infinity where no result
/// exists.

namespace reel {

/// Solves a x = b for x: a (…, N, N); b (…, N, K), or a vector (N) for all matrices → b's shape. Leading axes
/// broadcast.
/// Throws: Error for a singular matrix; ShapeError unless the sizes fit; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.solve.
Tensor solve(const Arg& a, const Arg& b);

/// Options of `triangular_solve`.
struct TriangularSolveOptions {
  /// Reads the upper triangle instead of the lower one. Default false.
  bool upper = false;
  /// Solves aᵀ x = b. Default false.
  bool transposed = false;
  /// The diagonal is taken to be ones and is not read. Default false.
  bool unit_diagonal = false;
};

/// Solves a x = b for x with triangular matrices: a (…, N, N); b (…, N, K), or a vector (N) for all matrices → b's
/// shape. Leading axes broadcast. The other triangle is not read and has no gradient.
/// Throws: Error for a 0 on the diagonal; ShapeError unless the sizes fit; DTypeError unless f32 or f64.
/// Source: PyTorch's triangular_solve.
Tensor triangular_solve(const Arg& a, const Arg& b, TriangularSolveOptions options = {});

/// The inverse: (…, N, N) → (…, N, N).
/// Throws: Error for a singular matrix; ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.inv.
Tensor inv(const Arg& a);

/// The determinant: (…, N, N) → (…). Its gradient throws Error for a singular matrix.
/// Throws: ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.det.
Tensor det(const Arg& a);

/// The determinant as sign · e^logabsdet, which neither overflows nor vanishes.
struct SignAndLogDet {
  Tensor sign;       ///< (…): −1, 0 or 1
  Tensor logabsdet;  ///< (…): log |det|; −∞ for a singular matrix
};

/// Sign and logarithm of the determinant: (…, N, N) → (…) each. Its gradient throws Error for a singular matrix.
/// Throws: ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.slogdet.
SignAndLogDet slogdet(const Arg& a);

/// The logarithm of the determinant: (…, N, N) → (…); −∞ where that is 0, NaN where it is negative.
/// Throws: ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: PyTorch's logdet.
Tensor logdet(const Arg& a);

/// The Cholesky factor: the lower triangular l with l lᵀ = a and a positive diagonal, for a symmetric and positive
/// definite: (…, N, N) → (…, N, N). Only the lower triangle is read; the gradient is symmetric, that of a change of
/// both halves.
/// Throws: Error where a is not positive definite; ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.cholesky.
Tensor cholesky(const Arg& a);

/// The QR decomposition a = q r, with qᵀ q = 1 and r upper triangular.
struct QR {
  Tensor q;  ///< (…, M, min(M, N))
  Tensor r;  ///< (…, min(M, N), N)
};

/// The QR decomposition a = q r of a: (…, M, N). The signs of r's diagonal are not normalised: a function of q and r
/// should not depend on them. The gradient throws Error where the first min(M, N) columns are dependent.
/// Throws: ShapeError unless matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.qr.
QR qr(const Arg& a);

/// The singular value decomposition a = u diag(s) vh, with K = min(M, N), uᵀ u = vh vhᵀ = 1 and s descending.
struct SVD {
  Tensor u;   ///< (…, M, K)
  Tensor s;   ///< (…, K)
  Tensor vh;  ///< (…, K, N)
};

/// The singular value decomposition of a: (…, M, N), with the signs by which in each column of u the first of the
/// elements that are at least half as large as the largest is positive. The gradient is not finite where singular
/// values are equal or, unless M = N, where one is 0.
/// Throws: Error for NaN and infinity; ShapeError unless matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.svd with full_matrices=False.
SVD svd(const Arg& a);

/// The singular values of a: (…, M, N) → (…, min(M, N)), descending. They take less time than `svd`; the gradient takes
/// that of `svd`.
/// Throws: Error for NaN and infinity; ShapeError unless matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.svdvals.
Tensor svdvals(const Arg& a);

/// The eigendecomposition a = vectors diag(values) vectorsᵀ of a symmetric matrix.
struct Eigh {
  Tensor values;   ///< (…, N), ascending
  Tensor vectors;  ///< (…, N, N), one in each column
};

/// Eigenvalues and eigenvectors of symmetric matrices (…, N, N), of which only the lower triangle is read, with the
/// signs by which in each eigenvector the first of the elements that are at least half as large as the largest is
/// positive. The gradient through the vectors is not finite where values are equal; it is symmetric, that of a change
/// of both halves.
/// Throws: Error for NaN and infinity; ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.eigh.
Eigh eigh(const Arg& a);

/// The eigenvalues of symmetric matrices: (…, N, N) → (…, N), ascending. Only the lower triangle is read. They take less
/// time than `eigh`; the gradient takes that of `eigh`.
/// Throws: Error for NaN and infinity; ShapeError unless square matrices; DTypeError unless f32 or f64.
/// Source: NumPy's linalg.eigvalsh.
Tensor eigvalsh(const Arg& a);

/// The norm that `matrix_norm` computes of a matrix with the elements a_ij and the singular values s_k.
enum class MatrixNorm : std::uint8_t {
  frobenius,       ///< √(Σ a_ij²)
  nuclear,         ///< Σ s_k
  one,             ///< max_j Σ_i |a_ij|
  minus_one,       ///< min_j Σ_i |a_ij|
  two,             ///< max_k s_k
  minus_two,       ///< min_k s_k
  infinity,        ///< max_i Σ_j |a_ij|
  minus_infinity,  ///< min_i Σ_j |a_ij|
};

/// Options of `matrix_norm`.
struct MatrixNormOptions {
  /// Whether the last two axes stay, with size 1. Default false.
  bool keepdims = false;
};

/// A norm of matrices: (…, M, N) → (…). Where it is a largest or smallest number, the gradient is shared evenly among
/// equal ones.
/// Throws: ShapeError unless matrices, and for a largest or smallest number of none; DTypeError unless f32 or f64; Error
/// for NaN and infinity where singular values are needed.
/// Source: PyTorch's linalg.matrix_norm.
Tensor matrix_norm(const Arg& a, MatrixNorm norm = MatrixNorm::frobenius, MatrixNormOptions options = {});

/// Options of `matrix_rank`, `pinv` and `lstsq`: singular values up to max(absolute, relative · the largest one) are
/// treated as 0.
struct RankTolerance {
  double absolute = 0;                  ///< default 0
  std::optional<double> relative = {};  ///< default: max(M, N) times the distance of 1 to the next number
};

/// The number of singular values above the tolerance: (…, M, N) → (…), i64. No gradient.
/// Throws: ShapeError unless matrices; DTypeError unless f32 or f64; Error for NaN and infinity.
/// Source: PyTorch's linalg.matrix_rank.
Tensor matrix_rank(const Arg& a, RankTolerance tolerance = {});

/// The pseudo-inverse of Moore and Penrose: (…, M, N) → (…, N, M). The gradient is that of a change which keeps the
/// rank.
/// Throws: ShapeError unless matrices; DTypeError unless f32 or f64; Error for NaN and infinity.
/// Source: PyTorch's linalg.pinv.
Tensor pinv(const Arg& a, RankTolerance tolerance = {});

/// The least-squares solution of a x = b.
struct LeastSquares {
  Tensor solution;  ///< (…, N, K), or (…, N) for a vector b: of all x with the least Σ (a x − b)² that of least norm
  Tensor residuals;  ///< (…, K), or (…): Σ (a x − b)² of each column
  Tensor rank;       ///< (…), i64: the rank of each matrix
};

/// The x with the least Σ (a x − b)²: a (…, M, N); b (…, M, K), or a vector (M) for all matrices. Leading axes
/// broadcast. The gradient is that of a change which keeps the rank.
/// Throws: ShapeError unless the sizes fit; DTypeError unless f32 or f64, and for operands of two dtypes; DeviceError;
/// Error for NaN and infinity in a.
/// Source: PyTorch's linalg.lstsq; here residuals of all ranks.
LeastSquares lstsq(const Arg& a, const Arg& b, RankTolerance tolerance = {});

/// Options of `cholesky_solve`.
struct CholeskySolveOptions {
  /// Whether the factor is upper triangular, u with uᵀ u, instead of lower triangular, l with l lᵀ. Default false.
  bool upper = false;
};

/// Solves l lᵀ x = b for x, with the factor that `cholesky` gives: l (…, N, N); b (…, N, K), or a vector (N) for all
/// matrices → b's shape. Leading axes broadcast. The other triangle is not read and has no gradient.
/// Throws: Error for a 0 on the diagonal; ShapeError unless the sizes fit; DTypeError unless f32 or f64.
/// Source: PyTorch's cholesky_solve, with the factor first.
Tensor cholesky_solve(const Arg& l, const Arg& b, CholeskySolveOptions options = {});

/// The LU decomposition a = p l u with K = min(M, N).
struct LU {
  Tensor p;  ///< (…, M, M): a permutation
  Tensor l;  ///< (…, M, K): lower triangular, with ones on its diagonal and no element larger than 1 in magnitude
  Tensor u;  ///< (…, K, N): upper triangular
};

/// The LU decomposition a = p l u with partial pivoting: a (…, M, N). Its gradient throws Error where the leading
/// (K, K) part of u is singular.
/// Throws: ShapeError unless matrices; DTypeError unless f32 or f64.
/// Source: PyTorch's linalg.lu.
LU lu(const Arg& a);

/// The exponential Σ aⁿ / n! of square matrices: (…, N, N) → (…, N, N), by scaling, a Padé approximant and squaring.
/// Throws: ShapeError unless square matrices; DTypeError unless f32 or f64; Error for NaN and infinity.
/// Source: Higham, The Scaling and Squaring Method for the Matrix Exponential Revisited, 2005.
Tensor matrix_exp(const Arg& a);

}  // namespace reel
