#include <reel/ops/linear_algebra.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/norm.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <cmath>

#include "linear_algebra_checks.h"

namespace reel {

using namespace detail;

namespace {

Tensor norm_of(const Tensor& a, MatrixNorm norm) {
  switch (norm) {
    case MatrixNorm::nuclear: return sum(svdvals(a), -1);
    case MatrixNorm::one: return max(sum(abs(a), -2), -1);
    case MatrixNorm::minus_one: return min(sum(abs(a), -2), -1);
    case MatrixNorm::two: return max(svdvals(a), -1);
    case MatrixNorm::minus_two: return min(svdvals(a), -1);
    case MatrixNorm::infinity: return max(sum(abs(a), -1), -1);
    case MatrixNorm::minus_infinity: return min(sum(abs(a), -1), -1);
    default: return reel::norm(a, {-2, -1});
  }
}

// Whether a norm of (M, N) is the largest or smallest of no numbers.
bool is_of_nothing(MatrixNorm norm, std::int64_t rows, std::int64_t columns) {
  switch (norm) {
    case MatrixNorm::frobenius:
    case MatrixNorm::nuclear: return false;
    case MatrixNorm::one:
    case MatrixNorm::minus_one: return columns == 0;
    case MatrixNorm::infinity:
    case MatrixNorm::minus_infinity: return rows == 0;
    default: return rows == 0 || columns == 0;
  }
}

}  // namespace

Tensor matrix_norm(const Arg& a, MatrixNorm norm, MatrixNormOptions options) {
  const char* name = "matrix_norm";
  const Tensor& matrices = matrices_of(name, a);
  OpScope caller(a.location(), name);
  if (is_of_nothing(norm, matrices.size(-2), matrices.size(-1)))
    fail<ShapeError>(name, a.location(), "this norm is the largest or smallest of no numbers, for {}",
                     describe(matrices));
  Tensor y = norm_of(matrices, norm);
  return options.keepdims ? unsqueeze(y, {-2, -1}) : y;
}

Tensor cholesky_solve(const Arg& l, const Arg& b, CholeskySolveOptions options) {
  const char* name = "cholesky_solve";
  const Tensor &factor = square_matrices_of(name, l), &right = tensor_of(name, b);
  OpScope caller(l.location(), name);
  bool vector = right.rank() == 1, upper = options.upper;
  Tensor half = triangular_solve(factor, right, {.upper = upper, .transposed = upper});
  // A vector is a column in the second step, too, whose right side has the axes of a batch.
  if (vector) half = unsqueeze(half, -1);
  Tensor x = triangular_solve(factor, half, {.upper = upper, .transposed = !upper});
  return vector ? squeeze(x, -1) : x;
}

namespace {

// The diagonal Padé approximants p(a) / p(−a) of e^a, of degree 13 for f64 and 7 for f32, which need no scaling up to
// the 1-norm `reach`.
struct Pade {
  int degree;
  double reach;
  double coefficients[14];
};

constexpr Pade pade_7{7, 3.925724783138660, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}};
constexpr Pade pade_13{13,
                       5.371920351148152,
                       {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
                        10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1}};

// p is divided by its first coefficient, so that no term is large.
Tensor approximated(const Tensor& a, const Pade& pade) {
  Tensor one = eye(a.size(-1), {.dtype = a.dtype(), .device = a.device()});
  auto c = [&](int k) { return pade.coefficients[k] / pade.coefficients[0]; };
  Tensor a2 = matmul(a, a), a4 = matmul(a2, a2), a6 = matmul(a4, a2);
  Tensor odd = a6 * c(7) + a4 * c(5) + a2 * c(3) + one * c(1), even = a6 * c(6) + a4 * c(4) + a2 * c(2) + one;
  if (pade.degree == 13) {
    odd = matmul(a6, a6 * c(13) + a4 * c(11) + a2 * c(9)) + odd;
    even = matmul(a6, a6 * c(12) + a4 * c(10) + a2 * c(8)) + even;
  }
  odd = matmul(a, odd);
  return solve(even - odd, even + odd);
}

// How often each matrix (…, N, N) is halved before the approximant is taken: (…, 1, 1), f64.
Tensor halvings(const Tensor& a, double reach) {
  NoRecord pause;
  Tensor size = max(sum(abs(to(a, DType::f64)), -2), -1);
  return unsqueeze(ceil(log2(maximum(size / reach, 1.0))), {-2, -1});
}

}  // namespace

Tensor matrix_exp(const Arg& a) {
  const char* name = "matrix_exp";
  const Tensor& matrices = square_matrices_of(name, a);
  Location where = a.location();
  OpScope caller(where, name);
  if (matrices.numel() == 0) return copy(matrices);
  const Pade& pade = matrices.dtype() == DType::f32 ? pade_7 : pade_13;
  Tensor steps = halvings(matrices, pade.reach);
  auto most = max(steps).item();
  if (!std::isfinite(most)) fail<Error>(name, where, "a matrix of {} holds NaN or infinity", describe(matrices));
  Tensor y = approximated(matrices * to(pow(0.5, steps), matrices.dtype()), pade);
  for (double step = 1; step <= most; ++step) y = reel::where(steps >= step, matmul(y, y), y);
  return y;
}

}  // namespace reel
