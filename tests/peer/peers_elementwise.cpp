#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

Peer unary(at::Tensor (*f)(const at::Tensor&)) {
  return [f](Tensors x, Given) { return f(x[0]); };
}
Peer binary(at::Tensor (*f)(const at::Tensor&, const at::Tensor&)) {
  return [f](Tensors x, Given) { return f(x[0], x[1]); };
}

}  // namespace

void add_elementwise_peers(Peers& peers) {
  peers["neg"] = unary(at::neg);
  peers["exp"] = unary(at::exp);
  peers["log"] = unary(at::log);
  peers["sqrt"] = unary(at::sqrt);
  peers["square"] = unary(at::square);
  peers["tanh"] = unary(at::tanh);
  peers["sigmoid"] = unary(at::sigmoid);
  peers["relu"] = unary(at::relu);
  peers["copy"] = [](Tensors x, Given) { return x[0].clone(); };
  peers["contiguous"] = [](Tensors x, Given) { return x[0].contiguous(); };
  peers["add"] = [](Tensors x, Given) { return x[0] + x[1]; };
  peers["sub"] = [](Tensors x, Given) { return x[0] - x[1]; };
  peers["mul"] = binary(at::mul);
  peers["div"] = binary(at::div);
  peers["pow"] = binary(at::pow);
  peers["equal"] = binary(at::eq);
  peers["not_equal"] = binary(at::ne);
  peers["less"] = binary(at::lt);
  peers["less_equal"] = binary(at::le);
  peers["greater"] = binary(at::gt);
  peers["greater_equal"] = binary(at::ge);
  peers["where"] = [](Tensors x, Given) { return at::where(x[0], x[1], x[2]); };
}

}  // namespace reel_test
