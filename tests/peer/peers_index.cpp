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

at::Tensor kth(Tensors x, Given given) {
  auto [values, indices] = x[0].kthvalue(given.integer("k"), given.integer("axis"), given.flag("keepdims"));
  return given.flag("indices") ? indices : values;
}

at::Tensor cumulative(const std::tuple<at::Tensor, at::Tensor>& found, Given given) {
  return given.flag("indices") ? std::get<1>(found) : std::get<0>(found);
}

at::Tensor unique(Tensors x, Given given) {
  auto [values, inverse, counts] = given.has("axis") ? at::unique_dim(x[0], given.integer("axis"), true, true, true)
                                                     : at::_unique2(x[0], true, true, true);
  switch (given.integer("part")) {
    case 0: return values;
    case 1: return inverse;
    default: return counts;
  }
}

at::Tensor scatter_reduce(Tensors x, Given given) {
  const char* names[] = {"sum", "prod", "mean", "amax", "amin"};
  return x[0].scatter_reduce(given.integer("axis"), x[2], x[1], names[given.integer("reduction")],
                             given.flag("include_self"));
}

at::Tensor quantile(Tensors x, Given given) {
  const char* names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  return at::quantile(x[0], given.number("q"), given.integer("axis"), given.flag("keepdims"),
                      names[given.integer("interpolation")]);
}

// Its own has no gradient.
at::Tensor bincount(Tensors x, Given given) {
  if (!given.flag("weighted")) return at::bincount(x[1], {}, given.integer("minimum"));
  std::int64_t length = std::max(given.integer("minimum"), x[1].max().item<std::int64_t>() + 1);
  return at::zeros({length}, x[0].options().requires_grad(false)).index_add(0, x[1], x[0]);
}

void add_order_peers(Peers& peers) {
  peers["quantile"] = quantile;
  peers["kthvalue"] = kth;
  peers["cummax"] = [](Tensors x, Given given) { return cumulative(x[0].cummax(given.integer("axis")), given); };
  peers["cummin"] = [](Tensors x, Given given) { return cumulative(x[0].cummin(given.integer("axis")), given); };
  peers["unique"] = unique;
  peers["bucketize"] = [](Tensors x, Given given) {
    return at::bucketize(x[0], std::get<0>(x[1].sort()), false, given.flag("right"));
  };
  peers["bincount"] = bincount;
  peers["histc"] = [](Tensors x, Given given) {
    return at::histc(x[0], given.integer("bins"), given.number("low"), given.number("high"));
  };
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
  peers["masked_scatter"] = [](Tensors x, Given) { return x[0].masked_scatter(x[2], x[1]); };
  peers["index_copy"] = [](Tensors x, Given given) { return x[0].index_copy(given.integer("axis"), x[2], x[1]); };
  peers["index_fill"] = [](Tensors x, Given given) { return x[0].index_fill(given.integer("axis"), x[2], x[1]); };
  peers["scatter_reduce"] = scatter_reduce;
  add_order_peers(peers);
  peers["nonzero"] = [](Tensors x, Given) { return x[0].nonzero(); };
  peers["sort"] = peers["argsort"] = sorted;
  peers["topk"] = topk;
  peers["searchsorted"] = [](Tensors x, Given given) {
    return at::searchsorted(std::get<0>(x[0].sort()), x[1], false, given.flag("right"));
  };
}

}  // namespace reel_test
