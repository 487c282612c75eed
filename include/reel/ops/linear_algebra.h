#pragma once

#include <reel/tensor.h>

// Of matrices in the last two axes, each by itself; leading axes are a batch. f32 and f64 only: all throw DTypeError for
// others, ShapeError for what is no matrix, or not square where it must be. An Error names the matrix of a batch that is
// singular, not positive definite, or holds NaN or infinity where no result can be had.

namespace reel {

/// The x of a x = b: a (…, N, N); b (…, N, K), or a vector (N) that serves all → b's shape. Leading axes broadcast.
/// Throws: Error for a singular matrix. Source: NumPy's linalg.solve.
Tensor solve(const Arg& a, const Arg& b);

struct TriangularSolveOptions {
  /// The upper triangle is read, else the lower.
  bool upper = false;
  /// aᵀ x = b.
  bool transposed = false;
  /// The diagonal counts as ones and is not read.
  bool unit_diagonal = false;
};

/// `solve` for a triangular matrix; the other triangle is not read and has no gradient.
/// Throws: Error for a 0 on the diagonal. Source: PyTorch's triangular_solve.
Tensor triangular_solve(const Arg& a, const Arg& b, TriangularSolveOptions options = {});

/// The inverse: (…, N, N) → (…, N, N). Throws: Error for a singular matrix. Source: NumPy's linalg.inv.
Tensor inv(const Arg& a);

/// The determinant: (…, N, N) → (…). Its gradient throws Error for a singular matrix. Source: NumPy's linalg.det.
Tensor det(const Arg& a);

/// The determinant as sign · e^logabsdet, which neither overflows nor vanishes.
struct SignAndLogDet {
  Tensor sign;       ///< −1, 0 or 1
  Tensor logabsdet;  ///< −∞ for a singular matrix
};

/// Of (…, N, N), each (…). Its gradient throws Error for a singular matrix. Source: NumPy's linalg.slogdet.
SignAndLogDet slogdet(const Arg& a);

/// The logarithm of the determinant; −∞ where that is 0, NaN where it is negative. Source: PyTorch's logdet.
Tensor logdet(const Arg& a);

/// The lower triangular l with l lᵀ = a and a positive diagonal, for a symmetric and positive definite: (…, N, N). Only
/// the lower triangle is read; the gradient is symmetric, that of a change of both halves.
/// Throws: Error where a is not positive definite. Source: NumPy's linalg.cholesky.
Tensor cholesky(const Arg& a);

/// a = q r, with qᵀ q = 1 and r upper triangular.
struct QR {
  Tensor q;  ///< (…, M, min(M, N))
  Tensor r;  ///< (…, min(M, N), N)
};

/// Of (…, M, N). The signs of r's diagonal are as they come: what is made of q and r should not depend on them. The
/// gradient throws Error where the first min(M, N) columns are dependent. Source: NumPy's linalg.qr.
QR qr(const Arg& a);

/// a = u diag(s) vh, with K = min(M, N), uᵀ u = vh vhᵀ = 1 and s falling.
struct SVD {
  Tensor u;   ///< (…, M, K)
  Tensor s;   ///< (…, K)
  Tensor vh;  ///< (…, K, N)
};

/// Of (…, M, N), with the signs by which in each column of u the first of the elements that are at least half as large as
/// the largest is positive. The gradient is not finite where singular values are equal or, unless M = N, where one is 0.
/// Throws: Error for NaN and infinity. Source: NumPy's linalg.svd with full_matrices=False.
SVD svd(const Arg& a);

/// a = vectors diag(values) vectorsᵀ.
struct Eigh {
  Tensor values;   ///< (…, N), rising
  Tensor vectors;  ///< (…, N, N), one in each column
};

/// Eigenvalues and -vectors of symmetric matrices (…, N, N), of which only the lower triangle is read, with signs
/// as `svd` has in u. The gradient through the vectors is not finite where values are equal; it is symmetric, that of a
/// change of both halves. Throws: Error for NaN and infinity. Source: NumPy's linalg.eigh.
Eigh eigh(const Arg& a);

}  // namespace reel
