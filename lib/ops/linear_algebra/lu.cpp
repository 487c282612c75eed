#include <reel/ops/linear_algebra.h>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>

#include <algorithm>

#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
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

// The factors of matrices with pivoting, and the order of their rows; without a gradient.
constexpr OpInfo elimination_op{
    .name = "lu_elimination",
    .forward = [](Call& call) { linear_algebra_kernels(call).lu(call.output(0), call.output(1), call.input(0)); },
    .joining = by_matrices,
    .internal = true,
};

LU lu(const Arg& a) {
  const Tensor& matrices = matrices_of("lu", a);
  Location where = a.location();
  OpScope caller(where, "lu");
  std::int64_t rows = matrices.size(-2), columns = matrices.size(-1), size = std::min(rows, columns);
  Tensor p, found[2];  // factors and order
  {
    NoRecord pause;
    Tensor given = contiguous_if_needed(Arg(matrices, where));
    Shape order_shape = with_batch(given, {rows});
    OutputSpec specs[] = {{given.body(), given.dtype()}, {order_shape, DType::i64, given.device()}};
    const Tensor* inputs[] = {&given};
    Call call{elimination_op, inputs, {}, specs, found, where};
    invoke(call);
    // Row i of p aᵀ's inverse has a one where row i has gone.
    p = transpose(one_hot(found[1], rows, matrices.dtype()));
  }
  Tensor ordered = gather(matrices, -2, expand(unsqueeze(found[1], -1), matrices.shape()));
  auto leading = [&](const Tensor& x) { return contiguous_if_needed(slice(x, -1, 0, size)); };
  Tensor tall = leading(ordered), factors = leading(found[0]);
  Tensor y = invoke(lu_op, {&tall, &factors}, {tall.body(), tall.dtype()}, where);
  Tensor l = tril(y, -1) + eye(rows, {.columns = size, .dtype = y.dtype(), .device = y.device()});
  Tensor u = triu(rows > size ? slice(y, -2, 0, size) : y);
  // The other columns of u follow from l.
  if (columns > size) u = concat({u, triangular_solve(y, slice(ordered, -1, size), {.unit_diagonal = true})}, -1);
  return {p, l, u};
}

OpList detail::lu_ops() {
  static constexpr const OpInfo* ops[] = {&lu_op, &elimination_op};
  return ops;
}

}  // namespace reel
