#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// Its own sparse products have no gradient to the values alone, so this is their dense form.
at::Tensor from_coordinates(const at::Tensor& rows, const at::Tensor& columns, const at::Tensor& values, Given given) {
  at::Tensor nothing = at::zeros(given.integers("shape"), values.options().requires_grad(false));
  return nothing.index_put({rows, columns}, values, true);
}

at::Tensor from_rows(Tensors x, Given given) {
  at::Tensor offsets = at::tensor(given.integers("offsets")),
             columns = at::tensor(given.integers("columns"), at::kLong);
  at::Tensor counts = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  at::Tensor rows = at::repeat_interleave(at::arange(counts.numel(), at::kLong), counts);
  return from_coordinates(rows, columns, x[0], given);
}

}  // namespace

void add_sparse_peers(Peers& peers) {
  peers["csr_matmul"] = [](Tensors x, Given given) {
    at::Tensor matrix = from_rows(x, given);
    return at::matmul(given.flag("transposed") ? matrix.t() : matrix, x[1]);
  };
  peers["csr_matrix"] = peers["to_dense"] = from_rows;
  peers["csr_from_coordinates"] = [](Tensors x, Given given) { return from_coordinates(x[0], x[1], x[2], given); };
  peers["csr_from_dense"] = [](Tensors x, Given) { return at::where(x[0] > 0, x[0], at::zeros_like(x[0])); };
}

}  // namespace reel_test
