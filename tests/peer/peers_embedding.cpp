#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_embedding_peers(Peers& peers) {
  peers["embedding"] = [](Tensors x, Given) { return at::embedding(x[0], x[1]); };
  peers["embedding_bag"] = [](Tensors x, Given given) {
    at::Tensor list = x[1].reshape(-1), starts = at::arange(x[1].size(0)) * x[1].size(1);
    c10::optional<at::Tensor> weights;
    if (given.flag("weighted")) weights = x[2].reshape(-1);
    return std::get<0>(at::embedding_bag(x[0], list, starts, false, given.integer("mode"), false, weights));
  };
}

}  // namespace reel_test
