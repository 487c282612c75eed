#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// libtorch has no layout with the channels last, and pads both ends alike.
at::Tensor convolved(Tensors x, Given given, bool transposed) {
  at::Tensor input = given.flag("last") ? x[0].movedim(-1, 1) : x[0];
  std::vector<std::int64_t> before = given.integers("before"), after = given.integers("after");
  std::vector<std::int64_t> padding(before.size(), 0);
  if (transposed) {
    padding = before;
  } else {
    std::vector<std::int64_t> widths;
    for (std::size_t axis = before.size(); axis-- > 0;) {
      widths.push_back(before[axis]);
      widths.push_back(after[axis]);
    }
    input = at::constant_pad_nd(input, widths);
  }
  c10::optional<at::Tensor> bias;
  if (x.size() > 2) bias = x[2];
  at::Tensor y = at::convolution(input, x[1], bias, given.integers("stride"), padding, given.integers("dilation"),
                                 transposed, given.integers("output_padding"), given.integer("groups"));
  return given.flag("last") ? y.movedim(1, -1) : y;
}

}  // namespace

void add_convolution_peers(Peers& peers) {
  for (const char* axes : {"1d", "2d", "3d"}) {
    peers[std::string("conv") + axes] = [](Tensors x, Given given) { return convolved(x, given, false); };
    peers[std::string("conv_transposed") + axes] = [](Tensors x, Given given) { return convolved(x, given, true); };
  }
}

}  // namespace reel_test
