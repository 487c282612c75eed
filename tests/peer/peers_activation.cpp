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
  peers["glu"] = [](Tensors x, Given with) { return at::glu(x[0], with.integer("axis")); };
}

}  // namespace reel_test
