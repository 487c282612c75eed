#include "operators.h"

namespace reel::io::onnx {

namespace {

void write_matmul(Writer& w) { w.result(w.node("MatMul", {w.in(0), w.in(1)})); }

// c + a b
void write_addmm(Writer& w) {
  if (is_floating(w.out().dtype())) return w.result(w.node("Gemm", {w.in(1), w.in(2), w.in(0)}));
  w.result(w.node("Add", {w.in(0), w.node("MatMul", {w.in(1), w.in(2)})}));
}

void write_det(Writer& w) { w.result(w.node("Det", {w.in(0)})); }

}  // namespace

std::span<const Operator> product_operators() {
  static constexpr Operator table[] = {{"matmul", write_matmul}, {"addmm", write_addmm}, {"det", write_det}};
  return table;
}

}  // namespace reel::io::onnx
