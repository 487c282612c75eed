#include "peer/peers.h"

#include <cmath>
#include <limits>

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_attention_peers(Peers& peers) {
  peers["scaled_dot_product_attention"] = [](Tensors x, Given given) {
    double scale = given.number("scale");
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(x[0].size(-1)));
    at::Tensor scores = at::matmul(x[0], x[1].transpose(-2, -1)) * scale;
    if (x.size() > 3) scores = scores + x[3];
    if (given.flag("causal")) {
      at::Tensor seen = at::ones(scores.sizes(), at::kBool).tril();
      scores = scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
    }
    return at::matmul(at::softmax(scores, -1), x[2]);
  };
}

}  // namespace reel_test
