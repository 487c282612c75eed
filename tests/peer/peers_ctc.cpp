#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_ctc_peers(Peers& peers) {
  // Its gradient takes for granted that the log-probabilities come from log_softmax.
  peers["ctc_loss"] = [](Tensors x, Given given) {
    const at::Reduction::Reduction reductions[] = {at::Reduction::None, at::Reduction::Sum, at::Reduction::Mean};
    return at::ctc_loss(at::log_softmax(x[0], -1), x[1], x[2], x[3], given.integer("blank"),
                        reductions[given.integer("reduction")], given.flag("zero_infinity"));
  };
}

}  // namespace reel_test
