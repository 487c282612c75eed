#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// The axes of a reduction; all of them where none are named.
std::vector<std::int64_t> axes_of(const at::Tensor& x, Given given) {
  std::vector<std::int64_t> axes = given.integers("axes");
  if (axes.empty())
    for (std::int64_t i = 0; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

}  // namespace

void add_reduce_peers(Peers& peers) {
  peers["sum"] = [](Tensors x, Given given) { return x[0].sum(axes_of(x[0], given), given.flag("keepdims")); };
  peers["mean"] = [](Tensors x, Given given) { return x[0].mean(axes_of(x[0], given), given.flag("keepdims")); };
  peers["max"] = [](Tensors x, Given given) { return x[0].amax(axes_of(x[0], given), given.flag("keepdims")); };
}

}  // namespace reel_test
