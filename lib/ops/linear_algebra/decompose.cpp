#include <reel/ops/linear_algebra.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <array>
#include <utility>

#include "../../kernels/kernel_table.h"
#include "../../kernels/linear_algebra.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"
#include "linear_algebra_checks.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* not_finite = "holds NaN or infinity";

template <std::size_t count>
std::array<Tensor, count> run_with(const OpInfo& op, const Tensor& a, const Shape (&shapes)[count], Location where) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    OutputSpec specs[] = {{shapes[i], a.dtype(), a.device()}...};
    std::array<Tensor, count> outputs;
    const Tensor* inputs[] = {&a};
    Call call{op, inputs, {}, specs, outputs, where};
    invoke(call);
    return outputs;
  }(std::make_index_sequence<count>());
}

// Vectors as matrices of one row, of one column, and as a diagonal.
Tensor as_row(const Tensor& v) { return unsqueeze(v, -2); }
Tensor as_column(const Tensor& v) { return unsqueeze(v, -1); }
Tensor identity_like(const Tensor& v) { return eye(v.size(-1), {.dtype = v.dtype(), .device = v.device()}); }
Tensor on_diagonal(const Tensor& v) { return as_column(v) * identity_like(v); }

// The matrix v_k − v_j in row j, column k, with 1 on the diagonal.
Tensor differences(const Tensor& v) { return as_row(v) - as_column(v) + identity_like(v); }

Tensor symmetric(const Tensor& a) { return (a + transpose(a)) * 0.5; }
Tensor skew(const Tensor& a) { return a - transpose(a); }

}  // namespace

// cholesky: y yᵀ = a;  da = ½ (s + sᵀ), s = y⁻ᵀ Φ(yᵀ d) y⁻¹, where Φ keeps the lower triangle and half the diagonal

constexpr OpInfo cholesky_op{
    .name = "cholesky",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).cholesky(call.output(), call.input(0)),
                       "is not positive definite");
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& y = g.saved_output();
          Tensor product = matmul(transpose(y), g.output()), half = (tril(product) + tril(product, -1)) * 0.5;
          Tensor left = triangular_solve(y, half, {.transposed = true});
          g.accumulate(0, symmetric(triangular_solve(y, transpose(left), {.transposed = true})));
        },
    .saves_output_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor cholesky(const Arg& a) {
  Tensor matrices = contiguous_if_needed(Arg(square_matrices_of(cholesky_op.name, a), a.location()));
  return invoke(cholesky_op, {&matrices}, {matrices.body(), matrices.dtype()}, a.location());
}

// qr: q r = a with as many columns as q;  da = (dq + q (p + pᵀ − diag p)) r⁻ᵀ, p = triu(dr rᵀ − qᵀ dq)

constexpr OpInfo qr_op{
    .name = "qr",
    .forward = [](Call& call) { linear_algebra_kernels(call).qr(call.output(0), call.output(1), call.input(0)); },
    .gradient =
        [](Gradient& g) {
          const Tensor &q = g.saved_output(0), &r = g.saved_output(1), &dq = g.output(0), &dr = g.output(1);
          Tensor p = matmul(dr, transpose(r)) - matmul(transpose(q), dq);
          Tensor both = triu(p) + transpose(triu(p, 1));
          Tensor first_term = triangular_solve(r, transpose(dq + matmul(q, both)), {.upper = true});
          g.accumulate(0, transpose(first_term));
        },
    .saves_output_for = {inputs({0}), inputs({0})},
    .joining = by_matrices,
};

QR qr(const Arg& a) {
  const Tensor& given = matrices_of(qr_op.name, a);
  Location where = a.location();
  OpScope caller(where, qr_op.name);
  std::int64_t rows = given.size(-2), columns = given.size(-1), size = std::min(rows, columns);
  Tensor square = contiguous_if_needed(columns > rows ? slice(given, -1, 0, rows) : given);
  auto [q, r] = run_with<2>(qr_op, square, {with_batch(given, {rows, size}), with_batch(given, {size, size})}, where);
  // The remaining columns of r follow from q.
  if (columns > rows) r = concat({r, matmul(transpose(q), slice(given, -1, rows))}, -1);
  return {q, r};
}

// svd: a = u s vh;  da = u (skew(uᵀ du) / e s + s skew(vh dvᵀ) / e + ds) vh + the parts of du and dvh orthogonal to u
// and vh, e_jk = s_k² − s_j²

constexpr OpInfo svd_op{
    .name = "svd",
    .forward =
        [](Call& call) {
          check_matrix(call,
                       linear_algebra_kernels(call).svd(call.output(0), call.output(1), call.output(2), call.input(0)),
                       not_finite);
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &u = g.saved_output(0), &s = g.saved_output(1), &vh = g.saved_output(2);
          // The gradient of the singular values alone needs no differences.
          if (!g.has_output(0) && !g.has_output(2)) return g.accumulate(0, matmul(u * as_row(g.output(1)), vh));
          const Tensor &du = g.output(0), &dvh = g.output(2);
          Tensor e = differences(square(s)), inner_u = matmul(transpose(u), du), inner_v = matmul(vh, transpose(dvh));
          Tensor inner = skew(inner_u) / e * as_row(s) + as_column(s) * (skew(inner_v) / e) + on_diagonal(g.output(1));
          Tensor da = matmul(matmul(u, inner), vh);
          if (u.size(-2) > u.size(-1)) da = da + matmul((du - matmul(u, inner_u)) / as_row(s), vh);
          if (vh.size(-1) > vh.size(-2)) da = da + matmul(u, (dvh - matmul(transpose(inner_v), vh)) / as_column(s));
          g.accumulate(0, da);
        },
    .saves_output_for = {inputs({0}), inputs({0}), inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

SVD svd(const Arg& a) {
  Location where = a.location();
  Tensor given = contiguous_if_needed(Arg(matrices_of(svd_op.name, a), where));
  std::int64_t rows = given.size(-2), columns = given.size(-1), size = std::min(rows, columns);
  auto [u, s, vh] = run_with<3>(
      svd_op, given, {with_batch(given, {rows, size}), with_batch(given, {size}), with_batch(given, {size, columns})},
      where);
  return {u, s, vh};
}

// eigh: a = v diag(w) vᵀ;  da = ½ (s + sᵀ), s = v (diag(dw) + vᵀ dv / e off the diagonal) vᵀ, e_jk = w_k − w_j

constexpr OpInfo eigh_op{
    .name = "eigh",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).eigh(call.output(0), call.output(1), call.input(0)),
                       not_finite);
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &w = g.saved_output(0), &v = g.saved_output(1);
          Tensor inner = on_diagonal(g.output(0));
          if (g.has_output(1))
            inner = inner + matmul(transpose(v), g.output(1)) * (1 - identity_like(w)) / differences(w);
          g.accumulate(0, symmetric(matmul(matmul(v, inner), transpose(v))));
        },
    .saves_output_for = {inputs({0}), inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Eigh eigh(const Arg& a) {
  Location where = a.location();
  Tensor given = contiguous_if_needed(Arg(square_matrices_of(eigh_op.name, a), where));
  auto [values, vectors] = run_with<2>(eigh_op, given, {with_batch(given, {given.size(-1)}), given.shape()}, where);
  return {values, vectors};
}

// svdvals and eigvalsh compute no vectors: their gradients do.
// svdvals: da = u diag(ds) vh

constexpr OpInfo svdvals_op{
    .name = "svdvals",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).svd({}, call.output(), {}, call.input(0)), not_finite);
        },
    .gradient =
        [](Gradient& g) {
          auto [u, s, vh] = svd(g.saved_input(0));
          g.accumulate(0, matmul(u * as_row(g.output()), vh));
        },
    .saves_input_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor svdvals(const Arg& a) {
  Tensor given = contiguous_if_needed(Arg(matrices_of(svdvals_op.name, a), a.location()));
  std::int64_t size = std::min(given.size(-2), given.size(-1));
  return run_with<1>(svdvals_op, given, {with_batch(given, {size})}, a.location())[0];
}

// eigvalsh: da = v diag(dw) vᵀ

constexpr OpInfo eigvalsh_op{
    .name = "eigvalsh",
    .forward =
        [](Call& call) {
          check_matrix(call, linear_algebra_kernels(call).eigh(call.output(), {}, call.input(0)), not_finite);
        },
    .gradient =
        [](Gradient& g) {
          Tensor v = eigh(g.saved_input(0)).vectors;
          g.accumulate(0, matmul(v * as_row(g.output()), transpose(v)));
        },
    .saves_input_for = {inputs({0})},
    .joining = by_matrices,
    .accepts_elements = refuses_some,
};

Tensor eigvalsh(const Arg& a) {
  Tensor given = contiguous_if_needed(Arg(square_matrices_of(eigvalsh_op.name, a), a.location()));
  return run_with<1>(eigvalsh_op, given, {with_batch(given, {given.size(-1)})}, a.location())[0];
}

OpList detail::decompose_ops() {
  static constexpr const OpInfo* ops[] = {&cholesky_op, &qr_op, &svd_op, &svdvals_op, &eigh_op, &eigvalsh_op};
  return ops;
}

}  // namespace reel
