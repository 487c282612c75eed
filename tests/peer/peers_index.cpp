#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

at::Tensor sorted(Tensors x, Given given) {
  auto [values, indices] = x[0].sort(/*stable=*/true, given.integer("axis"), given.flag("descending"));
  return given.flag("indices") ? indices : values;
}

at::Tensor topk(Tensors x, Given given) {
  auto [values, indices] = x[0].topk(given.integer("k"), given.integer("axis"), given.flag("descending"));
  return given.flag("indices") ? indices : values;
}

at::Tensor index_put(Tensors x, Given given) {
  c10::List<c10::optional<at::Tensor>> indices;
  for (std::size_t i = 1; i + 1 < x.size(); ++i) indices.push_back(x[i]);
  return x[0].index_put(indices, x.back(), given.flag("accumulate"));
}

}  // namespace

void add_index_peers(Peers& peers) {
  peers["index"] = [](Tensors x, Given given) {
    namespace names = at::indexing;
    names::Slice range(given.integer("start"), names::None, given.integer("step"));
    return x[0].index({given.integer("first"), range, names::None, names::Ellipsis});
  };
  peers["gather"] = [](Tensors x, Given given) { return x[0].gather(given.integer("axis"), x[1]); };
  peers["scatter"] = [](Tensors x, Given given) { return x[0].scatter(given.integer("axis"), x[1], x[2]); };
  peers["scatter_add"] = [](Tensors x, Given given) { return x[0].scatter_add(given.integer("axis"), x[1], x[2]); };
  // Its own take knows no axis.
  peers["take"] =
      peers["index_select"] = [](Tensors x, Given given) { return x[0].index_select(given.integer("axis"), x[1]); };
  peers["index_add"] = [](Tensors x, Given given) { return x[0].index_add(given.integer("axis"), x[1], x[2]); };
  peers["segment_sum"] = [](Tensors x, Given given) {
    std::vector<std::int64_t> shape = x[0].sizes().vec();
    shape[0] = given.integer("segments");
    return at::zeros(shape, x[0].options().requires_grad(false)).index_add(0, x[1], x[0]);
  };
  peers["index_put"] = index_put;
  peers["masked_fill"] = [](Tensors x, Given) { return x[0].masked_fill(x[1], x[2]); };
  peers["masked_select"] = [](Tensors x, Given) { return x[0].masked_select(x[1]); };
  peers["nonzero"] = [](Tensors x, Given) { return x[0].nonzero(); };
  peers["sort"] = peers["argsort"] = sorted;
  peers["topk"] = topk;
  peers["searchsorted"] = [](Tensors x, Given given) {
    return at::searchsorted(std::get<0>(x[0].sort()), x[1], false, given.flag("right"));
  };
}

}  // namespace reel_test
