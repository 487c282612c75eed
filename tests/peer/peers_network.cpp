#include <cmath>

#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_network_peers(Peers& peers) {
  // Elements outside of the mask are −∞, and afterwards 0.
  peers["softmax"] = [](Tensors x, Given given) {
    if (x.size() == 1) return at::softmax(x[0], given.integer("axis"));
    at::Tensor out = at::logical_not(x[1]), seen = at::masked_fill(x[0], out, -INFINITY);
    return at::masked_fill(at::softmax(seen, given.integer("axis")), out, 0);
  };
  peers["log_softmax"] = [](Tensors x, Given given) {
    if (x.size() == 1) return at::log_softmax(x[0], given.integer("axis"));
    at::Tensor out = at::logical_not(x[1]), seen = at::masked_fill(x[0], out, -INFINITY);
    return at::masked_fill(at::log_softmax(seen, given.integer("axis")), out, 0);
  };
  peers["stop_gradient"] = [](Tensors x, Given) { return x[0].detach(); };
}

}  // namespace reel_test
