#include <cmath>

#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// Shifts the diagonal, as the op table's rows do.
at::Tensor shifted(const at::Tensor& x) {
  std::int64_t rows = x.size(-2), columns = x.size(-1), most = std::max(rows, columns);
  at::Tensor shift = at::zeros({rows, columns}, x.options().requires_grad(false));
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i) shift[i][i] = static_cast<double>(3 * most + 6 * i);
  return x + shift;
}

at::Tensor symmetric(const at::Tensor& x) {
  at::Tensor a = shifted(x);
  return a + a.mT();
}

at::Tensor eigh(Tensors x, Given given) {
  auto [values, vectors] = at::linalg_eigh(symmetric(x[0]));
  if (given.integer("part") == 0) return values;
  if (given.integer("part") == 1) return vectors.square();
  return at::matmul(vectors * values.unsqueeze(-2), vectors.mT());
}

at::Tensor qr(Tensors x, Given given) {
  at::Tensor a = shifted(x[0]);
  std::int64_t rows = a.size(-2);
  // Its own gradient of a matrix with more columns than rows is not there for this form.
  auto [q, r] = at::linalg_qr(a.size(-1) > rows ? a.slice(-1, 0, rows) : a);
  at::Tensor whole = a.size(-1) > rows ? at::cat({r, at::matmul(q.mT(), a.slice(-1, rows))}, -1) : r;
  return given.integer("part") == 0 ? at::matmul(q, whole) : whole.square();
}

at::Tensor svd(Tensors x, Given given) {
  auto [u, s, vh] = at::linalg_svd(shifted(x[0]), /*full_matrices=*/false);
  switch (given.integer("part")) {
    case 0: return at::matmul(u * s.unsqueeze(-2), vh);
    case 1: return s;
    case 2: return u.square();
    default: return vh.square();
  }
}

// Shifts beside the diagonal, as the rows of decompositions do, whose pivots are not on the diagonal.
at::Tensor shifted_beside(const at::Tensor& x) {
  std::int64_t rows = x.size(-2), columns = x.size(-1), most = std::max(rows, columns), size = std::min(rows, columns);
  at::Tensor shift = at::zeros({rows, columns}, x.options().requires_grad(false));
  for (std::int64_t i = 0; i < size; ++i) shift[i][(i + 1) % size] = static_cast<double>(3 * most + 6 * i);
  return x + shift;
}

at::Tensor matrix_norm(Tensors x, Given given) {
  at::Tensor a = shifted_beside(x[0]);
  switch (given.integer("part")) {
    case 0: return at::linalg_matrix_norm(a, "fro");
    case 1: return at::linalg_matrix_norm(a, "nuc");
    case 2: return at::linalg_matrix_norm(a, 1);
    case 3: return at::linalg_matrix_norm(a, -1);
    case 4: return at::linalg_matrix_norm(a, 2);
    case 5: return at::linalg_matrix_norm(a, -2);
    case 6: return at::linalg_matrix_norm(a, HUGE_VAL);
    default: return at::linalg_matrix_norm(a, -HUGE_VAL);
  }
}

at::Tensor lu(Tensors x, Given given) {
  auto [p, l, u] = at::linalg_lu(shifted_beside(x[0]));
  switch (given.integer("part")) {
    case 0: return at::matmul(p, at::matmul(l, u));
    case 1: return l;
    default: return u;
  }
}

// 1 / |w_k − w_j|, and 0 on the diagonal.
at::Tensor inverse_distances(const at::Tensor& w) {
  at::Tensor distances = (w.unsqueeze(-2) - w.unsqueeze(-1)).abs();
  return at::where(distances == 0, 0.0, distances.reciprocal());
}

// a = u s vᵀ, y = u²: with g = 2 u d, da = u (skew(uᵀ g) / e s) vᵀ, e_jk = s_k² − s_j², and, for more rows than columns,
// (g − u uᵀ g) / s vᵀ. The last difference cancels where a singular vector is nearly an axis.
at::Tensor left_vector_terms(const at::Tensor& a, const at::Tensor& d) {
  auto [u, s, vh] = at::linalg_svd(a, /*full_matrices=*/false);
  at::Tensor left = u.abs(), right = vh.abs(), row = s.unsqueeze(-2), g = 2 * left * d.abs();
  at::Tensor inner = at::matmul(left.mT(), g);
  at::Tensor terms = at::matmul(left, (inner + inner.mT()) * inverse_distances(s.square()) * row);
  if (a.size(-2) > a.size(-1)) terms = terms + (g + at::matmul(left, inner)) / row;
  return at::matmul(terms, right);
}

// a = v w vᵀ, y = v²: with g = 2 v d, da = ½ (t + tᵀ), t = v (vᵀ g / e) vᵀ, e_jk = w_k − w_j.
at::Tensor eigenvector_terms(const at::Tensor& a, const at::Tensor& d) {
  auto [w, v] = at::linalg_eigh(a);
  at::Tensor sizes = v.abs(), inner = at::matmul(sizes.mT(), 2 * sizes * d.abs()) * inverse_distances(w);
  at::Tensor terms = at::matmul(at::matmul(sizes, inner), sizes.mT());
  return (terms + terms.mT()) / 2;
}

}  // namespace

bool is_decomposition(const std::string& op) { return op == "eigh" || op == "svd"; }

double amplification(const std::string& op, const at::Tensor& x) {
  bool symmetrical = op == "eigh";
  at::Tensor values = symmetrical ? at::linalg_eigvalsh(symmetric(x)) : at::linalg_svdvals(shifted(x));
  at::Tensor distances = at::diff(values).abs();
  if (!symmetrical) distances = at::cat({distances, values}, -1);
  if (distances.numel() == 0) return 1;
  at::Tensor norms = std::get<0>(values.abs().max(-1, true));
  return std::max(1.0, (norms / distances).max().item<double>());
}

at::Tensor decomposition_terms(const std::string& op, const at::Tensor& x, const Attributes& attributes,
                               const at::Tensor& seed) {
  // x is in its symmetric matrix twice.
  if (op == "eigh" && attributes.integer("part") == 1) return 2 * eigenvector_terms(symmetric(x), seed);
  if (op == "svd" && attributes.integer("part") == 2) return left_vector_terms(shifted(x), seed);
  if (op == "svd" && attributes.integer("part") == 3) return left_vector_terms(shifted(x).mT(), seed.mT()).mT();
  return {};
}

void add_linear_algebra_peers(Peers& peers) {
  peers["inv"] = [](Tensors x, Given) { return at::linalg_inv(shifted(x[0])); };
  peers["det"] = [](Tensors x, Given) { return at::linalg_det(shifted(x[0])); };
  peers["slogdet"] = [](Tensors x, Given given) {
    auto [sign, logarithm] = at::linalg_slogdet(shifted(x[0]));
    return given.integer("part") == 0 ? sign : logarithm;
  };
  peers["logdet"] = [](Tensors x, Given) { return at::logdet(shifted(x[0])); };
  peers["matrix_norm"] = matrix_norm;
  peers["matrix_rank"] = [](Tensors x, Given) { return at::linalg_matrix_rank(shifted_beside(x[0])); };
  peers["pinv"] = [](Tensors x, Given) { return at::linalg_pinv(shifted_beside(x[0])); };
  peers["lu"] = lu;
  peers["matrix_exp"] = [](Tensors x, Given given) { return at::linalg_matrix_exp(x[0] * given.number("scale")); };
  peers["lstsq"] = [](Tensors x, Given) { return at::matmul(at::linalg_pinv(shifted_beside(x[0])), x[1]); };
  peers["cholesky_solve"] = [](Tensors x, Given given) {
    at::Tensor a = x[0] + 6 * at::eye(x[0].size(-1), x[0].options().requires_grad(false));
    bool upper = given.flag("upper");
    return at::cholesky_solve(x[1], upper ? a.triu() : a.tril(), upper);
  };
  peers["cholesky"] = [](Tensors x, Given) { return at::linalg_cholesky(symmetric(x[0])); };
  peers["eigh"] = eigh;
  peers["eigvalsh"] = [](Tensors x, Given) { return at::linalg_eigvalsh(symmetric(x[0])); };
  peers["qr"] = qr;
  peers["svd"] = svd;
  peers["svdvals"] = [](Tensors x, Given) { return at::linalg_svdvals(shifted(x[0])); };
  // Through f64, since its own solve broadcasts no matrices.
  peers["solve"] = [](Tensors x, Given) {
    return at::matmul(at::linalg_inv(shifted(x[0]).to(at::kDouble)), x[1].to(at::kDouble)).to(x[0].scalar_type());
  };
  peers["triangular_solve"] = [](Tensors x, Given given) {
    at::Tensor a = shifted(x[0]);
    bool upper = given.flag("upper");
    return at::linalg_solve_triangular(given.flag("transposed") ? a.mT() : a, x[1], given.flag("transposed") != upper,
                                       true, given.flag("unit_diagonal"));
  };
}

}  // namespace reel_test
