#include <reel/ops/linear_algebra.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <limits>

#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "linear_algebra_checks.h"

// Ops by the singular values of matrices, which least squares ask for only where a triangular factor does not tell the rank.

namespace reel {

using namespace detail;

// The pseudo-inverse y, which is computed from a copy without a gradient, of a matrix whose rank stays:
// da = −yᵀ d yᵀ + (1 − a y) dᵀ y yᵀ + yᵀ y dᵀ (1 − y a)

constexpr OpInfo pinv_op{
    .name = "pinv",
    .forward = [](Call& call) { kernels(call.output().device).copy(call.output(), call.input(1)); },
    .gradient =
        [](Gradient& g) {
          const Tensor &a = g.saved_input(0), &y = g.saved_output();
          Tensor y_transposed = transpose(y), d = g.output(), d_transposed = transpose(d);
          Tensor inner = matmul(y_transposed, matmul(d, y_transposed));
          Tensor left = matmul(d_transposed, matmul(y, y_transposed));
          Tensor right = matmul(matmul(y_transposed, y), d_transposed);
          g.accumulate(0, left - matmul(a, matmul(y, left)) + right - matmul(matmul(right, y), a) - inner);
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
};

namespace {

double relative(const Tensor& a, const RankTolerance& tolerance) {
  double unit =
      a.dtype() == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return tolerance.relative.value_or(static_cast<double>(std::max(a.size(-2), a.size(-1))) * unit);
}

// Whether each singular value (…, K) is above the tolerance.
Tensor above(const Tensor& a, const Tensor& s, const RankTolerance& tolerance) {
  if (s.size(-1) == 0) return s > 0.0;
  return s > maximum(slice(s, -1, 0, 1) * relative(a, tolerance), tolerance.absolute);
}

void check_tolerance(const char* op, const RankTolerance& tolerance, Location where) {
  if (!(tolerance.absolute >= 0) || !(tolerance.relative.value_or(0) >= 0))
    fail<Error>(op, where, "a tolerance is negative or NaN: absolute {}, relative {}", tolerance.absolute,
                tolerance.relative.value_or(0));
}

struct PseudoInverse {
  Tensor y, rank;
};

PseudoInverse pseudo_inverse(const Tensor& a, const RankTolerance& tolerance, Location where) {
  PseudoInverse found;
  Tensor value;
  {
    NoRecord pause;
    auto [u, s, vh] = svd(a);
    Tensor counts = above(a, s, tolerance);
    Tensor inverse = reel::where(counts, 1.0 / reel::where(counts, s, 1.0), 0.0);
    value = matmul(transpose(vh) * unsqueeze(inverse, -2), transpose(u));
    found.rank = count_nonzero(counts, -1);
  }
  found.y = invoke(pinv_op, {&a, &value}, {value.body(), value.dtype()}, where);
  return found;
}

// q r = a, or aᵀ for more columns than rows: the solution takes a fraction of the time of singular values.
struct Factors {
  explicit Factors(const Tensor& a) : wide(a.size(-2) < a.size(-1)), factors(qr(wide ? transpose(a) : a)) {}
  Tensor solution(const Tensor& b) const {
    const auto& [q, r] = factors;
    if (wide) return matmul(q, triangular_solve(r, b, {.upper = true, .transposed = true}));
    return triangular_solve(r, matmul(transpose(q), b), {.upper = true});
  }

  bool wide;
  QR factors;
};

// Returns for each matrix whether the norms of r and r⁻¹, between which its singular values lie, show that all of these
// are above the tolerance: 1 / |r⁻¹| > 2 max(absolute, relative |r|), where 2 is for the rounding of r and of the norms.
Tensor has_full_rank(Tensor r, double relative, double absolute) {
  Tensor regular = min(abs(diagonal(r)), -1) > 0.0;
  r = reel::where(unsqueeze(regular, {-2, -1}), r, 1.0);
  Tensor identity = expand(eye(r.size(-1), {.dtype = r.dtype()}), r.shape());
  Tensor inverse = triangular_solve(r, identity, {.upper = true});
  return logical_and(regular, 2.0 * matrix_norm(inverse) * maximum(matrix_norm(r) * relative, absolute) < 1.0);
}

struct Solved {
  Tensor solution, rank;
};

Solved solved_by_pseudo_inverse(const Tensor& a, const Tensor& b, const RankTolerance& tolerance, Location where) {
  auto [y, rank] = pseudo_inverse(a, tolerance, where);
  return {matmul(y, b), rank};
}

// Each matrix is solved in the way that it is alone.
Solved solved(const Tensor& a, const Tensor& b, const RankTolerance& tolerance, Location where) {
  std::int64_t size = std::min(a.size(-2), a.size(-1));
  if (a.device() != cpu || a.numel() == 0) return solved_by_pseudo_inverse(a, b, tolerance, where);
  Factors factors(a);
  Tensor full, rank;
  bool every, none;
  {
    NoRecord pause;
    full = has_full_rank(factors.factors.r, relative(a, tolerance), tolerance.absolute);
    rank = reel::full(full.shape(), size, {.dtype = DType::i64});
    every = all(full).item<bool>();
    none = !every && !any(full).item<bool>();
  }
  if (every) return {factors.solution(b), rank};
  Solved others = solved_by_pseudo_inverse(a, b, tolerance, where);
  if (none) return others;
  // An identity has no infinite gradient.
  Tensor each = unsqueeze(full, {-2, -1}), identity = eye(a.size(-2), {.columns = a.size(-1), .dtype = a.dtype()});
  return {reel::where(each, Factors(reel::where(each, a, identity)).solution(b), others.solution),
          reel::where(full, rank, others.rank)};
}

}  // namespace

Tensor matrix_rank(const Arg& a, RankTolerance tolerance) {
  const Tensor& matrices = matrices_of("matrix_rank", a);
  OpScope caller(a.location(), "matrix_rank");
  check_tolerance("matrix_rank", tolerance, a.location());
  NoRecord pause;  // a rank has no gradient
  return count_nonzero(above(matrices, svdvals(matrices), tolerance), -1);
}

Tensor pinv(const Arg& a, RankTolerance tolerance) {
  const Tensor& matrices = matrices_of("pinv", a);
  OpScope caller(a.location(), "pinv");
  check_tolerance("pinv", tolerance, a.location());
  return pseudo_inverse(matrices, tolerance, a.location()).y;
}

LeastSquares lstsq(const Arg& a, const Arg& b, RankTolerance tolerance) {
  const char* name = "lstsq";
  const Tensor &matrices = matrices_of(name, a), &right = tensor_of(name, b);
  Location where = a.location();
  OpScope caller(where, name);
  check_tolerance(name, tolerance, where);
  if (right.dtype() != matrices.dtype())
    fail<DTypeError>(name, where, "the matrices {} and the right side {} have different dtypes", describe(matrices),
                     describe(right));
  check_same_device(name, matrices, right, where);
  bool vector = right.rank() == 1;
  if (right.rank() == 0 || right.size(vector ? 0 : -2) != matrices.size(-2))
    fail<ShapeError>(name, where, "the right side {} does not fit the matrices {}: it needs {} rows", describe(right),
                     describe(matrices), matrices.size(-2));
  Tensor columns = vector ? unsqueeze(right, 1) : right;
  Shape batch;
  if (!broadcast(with_batch(matrices, {}), with_batch(columns, {}), batch))
    fail<ShapeError>(name, where, "leading axes do not broadcast: matrices {}, right side {}",
                     to_string(matrices.shape()), to_string(right.shape()));
  auto [solution, rank] = solved(matrices, columns, tolerance, where);
  Tensor residuals = sum(square(matmul(matrices, solution) - columns), -2);
  if (vector) {
    solution = squeeze(solution, -1);
    residuals = squeeze(residuals, -1);
  }
  return {solution, residuals, rank};
}

OpList detail::least_squares_ops() {
  static constexpr const OpInfo* ops[] = {&pinv_op};
  return ops;
}

}  // namespace reel
