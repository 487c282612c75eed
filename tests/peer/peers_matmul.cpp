#include <string>

#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_matmul_peers(Peers& peers) {
  peers["matmul"] = [](Tensors x, Given) { return at::matmul(x[0], x[1]); };
  peers["bmm"] = [](Tensors x, Given) { return at::bmm(x[0], x[1]); };
  peers["addmm"] = [](Tensors x, Given given) {
    return at::addmm(x[0], x[1], x[2], given.number("beta"), given.number("alpha"));
  };
  peers["outer"] = [](Tensors x, Given) { return at::outer(x[0].flatten(), x[1].flatten()); };
  peers["dot"] = [](Tensors x, Given) { return at::dot(x[0], x[1]); };
  peers["tensordot"] = [](Tensors x, Given given) {
    return at::tensordot(x[0], x[1], given.integers("axes_a"), given.integers("axes_b"));
  };
  peers["kron"] = [](Tensors x, Given) { return at::kron(x[0], x[1]); };
  peers["cross"] = [](Tensors x, Given given) { return at::linalg_cross(x[0], x[1], given.integer("axis")); };
  // libtorch's own trace has wrong gradients for matrices of more rows than columns.
  peers["trace"] = [](Tensors x, Given) { return x[0].diagonal().sum(); };
  peers["einsum"] = [](Tensors x, Given given) {
    std::string equation;
    for (std::int64_t character : given.integers("equation")) equation += static_cast<char>(character);
    return at::einsum(equation, x);
  };
}

}  // namespace reel_test
