#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_activation_peers(Peers& peers) {
  peers["leaky_relu"] = [](Tensors x, Given with) { return at::leaky_relu(x[0], with.number("slope")); };
  peers["gelu"] = [](Tensors x, Given with) { return at::gelu(x[0], with.flag("tanh") ? "tanh" : "none"); };
  peers["silu"] = [](Tensors x, Given) { return at::silu(x[0]); };
  peers["elu"] = [](Tensors x, Given with) { return at::elu(x[0], with.number("alpha")); };
  peers["selu"] = [](Tensors x, Given) { return at::selu(x[0]); };
  peers["softplus"] = [](Tensors x, Given with) {
    return at::softplus(x[0], with.number("beta"), with.number("threshold"));
  };
  peers["hardtanh"] = [](Tensors x, Given with) { return at::hardtanh(x[0], with.number("low"), with.number("high")); };
  peers["mish"] = [](Tensors x, Given) { return at::mish(x[0]); };
  peers["hardswish"] = [](Tensors x, Given) { return at::hardswish(x[0]); };
  peers["hardsigmoid"] = [](Tensors x, Given) { return at::hardsigmoid(x[0]); };
  peers["logsigmoid"] = [](Tensors x, Given) { return at::log_sigmoid(x[0]); };
  // ATen has no softsign; torch.nn.functional composes it, too.
  peers["softsign"] = [](Tensors x, Given) { return x[0] / (at::abs(x[0]) + 1); };
  peers["celu"] = [](Tensors x, Given with) { return at::celu(x[0], with.number("alpha")); };
  peers["softshrink"] = [](Tensors x, Given with) { return at::softshrink(x[0], with.number("lambda")); };
  peers["hardshrink"] = [](Tensors x, Given with) { return at::hardshrink(x[0], with.number("lambda")); };
  peers["prelu"] = [](Tensors x, Given) { return at::prelu(x[0], x[1]); };
  peers["glu"] = [](Tensors x, Given with) { return at::glu(x[0], with.integer("axis")); };
}

}  // namespace reel_test
