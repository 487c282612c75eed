#include <reel/ops.h>

#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

// c + a b
void write_addmm(Writer& w) {
  if (is_floating(w.out().dtype())) return w.result(w.node("Gemm", {w.in(1), w.in(2), w.in(0)}));
  w.result(w.node("Add", {w.in(0), w.node("MatMul", {w.in(1), w.in(2)})}));
}

Results run_matmul(const NodeCall& c) { return {matmul(c.first(), c.in(1))}; }
Results run_det(const NodeCall& c) { return {det(c.first())}; }

Results run_gemm(const NodeCall& c) {
  Tensor a = c.integer("transA", 0) != 0 ? transpose(c.first()) : c.in(0);
  Tensor b = c.integer("transB", 0) != 0 ? transpose(Arg(c.in(1), c.where())) : c.in(1);
  double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (!c.has(2)) {
    Tensor product = matmul(Arg(a, c.where()), b);
    return {alpha == 1 ? product : mul(Arg(product, c.where()), alpha)};
  }
  return {addmm(Arg(c.in(2), c.where()), a, b, {.beta = beta, .alpha = alpha})};
}

}  // namespace

std::span<const Operator> product_operators() {
  static constexpr Operator table[] = {
      {"matmul", "MatMul", run_matmul},
      {"addmm", "Gemm", run_gemm, write_addmm},
      {"det", "Det", run_det},
  };
  return table;
}

}  // namespace reel::io::onnx
