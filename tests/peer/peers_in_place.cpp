#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

}  // namespace

void add_in_place_peers(Peers& peers) {
  peers["add_"] = [](Tensors x, Given) { return x[0].clone().add_(x[1]); };
  peers["sub_"] = [](Tensors x, Given) { return x[0].clone().sub_(x[1]); };
  peers["mul_"] = [](Tensors x, Given) { return x[0].clone().mul_(x[1]); };
  peers["div_"] = [](Tensors x, Given) { return x[0].clone().div_(x[1]); };
  peers["copy_"] = [](Tensors x, Given) { return x[0].clone().copy_(x[1]); };
  peers["fill_"] = [](Tensors x, Given) { return x[0].clone().fill_(x[1]); };
  peers["zero_"] = [](Tensors x, Given) { return x[0].clone().zero_() + x[0]; };
  peers["clamp_"] = [](Tensors x, Given) { return x[0].clone().clamp_(x[1] - 1, x[1] + 1); };
  peers["masked_fill_"] = [](Tensors x, Given) { return x[0].clone().masked_fill_(x[1], x[2]); };
  peers["index_put_"] = [](Tensors x, Given) {
    return x[0].clone().index_put_({c10::optional<at::Tensor>(x[1])}, x[2]);
  };
}

}  // namespace reel_test
