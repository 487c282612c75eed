#include <reel/ops/linear_algebra.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <algorithm>

#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "linear_algebra_checks.h"

namespace reel {

using namespace detail;

// Matrices a = l u with at least as many rows as columns, whose factors are computed from a copy without a gradient. y
// has u in its upper triangle and l below, without its diagonal of ones. With the square parts a₁, l₁ and the rows a₂,
// l₂ below:  da₂ = dl₂ u⁻ᵀ,  da₁ = l₁⁻ᵀ (tril(l₁ᵀ dl₁, −1) + triu((du − l₂ᵀ da₂) uᵀ)) u⁻ᵀ

constexpr OpInfo lu_op{
    .name = "lu",
    .forward = [](Call& call) { kernels(call.output().device).copy(call.output(), call.input(1)); },
    .gradient =
        [](Gradient& g) {
          const Tensor& y = g.saved_output();
          std::int64_t size = y.size(-1);
          bool is_tall = y.size(-2) > size;
          Tensor square = is_tall ? slice(y, -2, 0, size) : y,
                 d = is_tall ? slice(g.output(), -2, 0, size) : g.output();
          // x u⁻ᵀ is the transpose of u⁻¹ xᵀ.
          auto divided = [&](const Tensor& x) {
            return transpose(triangular_solve(square, transpose(x), {.upper = true}));
          };
          Tensor below = tril(square, -1), dl = tril(d, -1), du = triu(d), rest;
          if (is_tall) {
            rest = divided(slice(g.output(), -2, size));
            du = du - triu(matmul(transpose(slice(y, -2, size)), rest));
          }
          // l₁ is `below` and a diagonal of ones.
          Tensor inner = tril(matmul(transpose(below), dl) + dl, -1) + triu(matmul(du, transpose(triu(square))));
          Tensor da = divided(triangular_solve(square, inner, {.transposed = true, .unit_diagonal = true}));
          g.accumulate(0, is_tall ? concat({da, rest}, -2) : da);
        },
    .saves_output_for = {inputs({0})},
};

namespace {

// The row of each matrix that elimination puts in each place, (…, M), and the factors, in the form of lu_op's y for as
// many rows and columns as the matrices (…, M, N) have.
struct Elimination {
  Tensor order, factors;
};

Tensor swapped(const Tensor& order, const Tensor& rows, std::int64_t k, const Tensor& pivot) {
  Tensor other = gather(order, -1, pivot), own = slice(order, -1, k, k + 1);
  return where(rows == k, other, where(rows == pivot, own, order));
}

Elimination eliminated(const Tensor& a) {
  std::int64_t rows = a.size(-2), columns = a.size(-1);
  Tensor row = arange(rows, {.dtype = DType::i64, .device = a.device()});
  Tensor column = arange(columns, {.dtype = DType::i64, .device = a.device()});
  Tensor order = copy(expand(row, with_batch(a, {rows}))), left = a, position = order;
  for (std::int64_t k = 0; k < std::min(rows, columns); ++k) {
    Tensor size = where(row >= k, abs(select(left, -1, k)), -1.0);
    Tensor pivot = argmax(size, -1, {.keepdims = true});
    Tensor moved = swapped(position, row, k, pivot);
    order = gather(order, -1, moved);
    left = gather(left, -2, expand(unsqueeze(moved, -1), left.shape()));
    Tensor top = slice(left, -2, k, k + 1), divisor = select(select(left, -1, k), -1, k);
    Tensor quotient = select(left, -1, k) / unsqueeze(where(divisor == 0.0, 1.0, divisor), -1);
    Tensor factor = unsqueeze(where(row > k, quotient, 0.0), -1);
    Tensor rest = left - factor * where(column > k, top, 0.0);
    left = where(logical_and(unsqueeze(row > k, -1), column == k), factor, rest);
  }
  return {order, left};
}

}  // namespace

LU lu(const Arg& a) {
  const Tensor& matrices = matrices_of("lu", a);
  Location where = a.location();
  OpScope caller(where, "lu");
  std::int64_t rows = matrices.size(-2), columns = matrices.size(-1), size = std::min(rows, columns);
  Elimination found;
  Tensor p;
  {
    NoRecord pause;
    found = eliminated(matrices);
    // Row i of p aᵀ's inverse has a one where row i has gone.
    p = transpose(one_hot(found.order, rows, matrices.dtype()));
  }
  Tensor ordered = gather(matrices, -2, expand(unsqueeze(found.order, -1), matrices.shape()));
  auto leading = [&](const Tensor& x) { return contiguous_if_needed(slice(x, -1, 0, size)); };
  Tensor tall = leading(ordered), factors = leading(found.factors);
  Tensor y = invoke(lu_op, {&tall, &factors}, {tall.body(), tall.dtype()}, where);
  Tensor l = tril(y, -1) + eye(rows, {.columns = size, .dtype = y.dtype(), .device = y.device()});
  Tensor u = triu(rows > size ? slice(y, -2, 0, size) : y);
  // The other columns of u follow from l.
  if (columns > size) u = concat({u, triangular_solve(y, slice(ordered, -1, size), {.unit_diagonal = true})}, -1);
  return {p, l, u};
}

OpList detail::lu_ops() {
  static constexpr const OpInfo* ops[] = {&lu_op};
  return ops;
}

}  // namespace reel
