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

template <class F>
Peer over_axes(F f) {
  return [=](Tensors x, Given given) { return f(x[0], axes_of(x[0], given), given.flag("keepdims")); };
}

using Axes = const std::vector<std::int64_t>&;

// The axes joined into one at the end, for what libtorch reduces along one axis only.
at::Tensor joined(const at::Tensor& x, Axes axes) {
  std::vector<std::int64_t> last;
  for (std::size_t i = 0; i < axes.size(); ++i) last.push_back(static_cast<std::int64_t>(i + x.dim() - axes.size()));
  return x.movedim(axes, last).flatten(last[0], -1);
}

// The shape of a result, which libtorch computes without the axes.
at::Tensor shaped(const at::Tensor& y, const at::Tensor& x, Axes axes, bool keepdims) {
  return keepdims ? y.reshape(x.sum(axes, true).sizes()) : y;
}

template <class F>
Peer over_one_axis(F f) {
  return over_axes(
      [=](const at::Tensor& x, Axes axes, bool keepdims) { return shaped(f(joined(x, axes)), x, axes, keepdims); });
}

}  // namespace

void add_reduce_peers(Peers& peers) {
  peers["sum"] = over_axes([](const at::Tensor& x, Axes axes, bool keepdims) { return x.sum(axes, keepdims); });
  peers["mean"] = over_axes([](const at::Tensor& x, Axes axes, bool keepdims) { return x.mean(axes, keepdims); });
  peers["max"] = over_axes([](const at::Tensor& x, Axes axes, bool keepdims) { return x.amax(axes, keepdims); });
  peers["min"] = over_axes([](const at::Tensor& x, Axes axes, bool keepdims) { return x.amin(axes, keepdims); });
  peers["logsumexp"] =
      over_axes([](const at::Tensor& x, Axes axes, bool keepdims) { return x.logsumexp(axes, keepdims); });
  peers["prod"] = over_one_axis([](const at::Tensor& x) { return x.prod(-1); });
  peers["argmax"] = over_one_axis([](const at::Tensor& x) { return x.argmax(-1); });
  peers["argmin"] = over_one_axis([](const at::Tensor& x) { return x.argmin(-1); });
  peers["any"] = over_one_axis([](const at::Tensor& x) { return x.any(-1); });
  peers["all"] = over_one_axis([](const at::Tensor& x) { return x.all(-1); });
  peers["count_nonzero"] = over_one_axis([](const at::Tensor& x) { return x.count_nonzero(at::IntArrayRef{-1}); });
  peers["median"] = over_one_axis([](const at::Tensor& x) { return x.quantile(0.5, -1); });
  peers["var"] = [](Tensors x, Given given) {
    return x[0].var(axes_of(x[0], given), given.integer("correction"), given.flag("keepdims"));
  };
  peers["std"] = [](Tensors x, Given given) {
    return x[0].std(axes_of(x[0], given), given.integer("correction"), given.flag("keepdims"));
  };
  peers["norm"] = [](Tensors x, Given given) {
    return at::linalg_vector_norm(x[0], given.number("p"), axes_of(x[0], given), given.flag("keepdims"));
  };
  peers["sum_to"] = [](Tensors x, Given given) { return x[0].sum_to_size(given.integers("shape")); };
  peers["cumsum"] = [](Tensors x, Given given) { return x[0].cumsum(given.integer("axis")); };
  peers["logcumsumexp"] = [](Tensors x, Given given) { return x[0].logcumsumexp(given.integer("axis")); };
  peers["cumprod"] = [](Tensors x, Given given) { return x[0].cumprod(given.integer("axis")); };
  peers["cosine_similarity"] = [](Tensors x, Given given) {
    return at::cosine_similarity(x[0], x[1], given.integer("axis"));
  };
  peers["pairwise_distance"] = [](Tensors x, Given given) {
    return at::pairwise_distance(x[0], x[1], given.number("p"), 1e-6, given.flag("keepdims"));
  };
  peers["cdist"] = [](Tensors x, Given given) { return at::cdist(x[0], x[1], given.number("p")); };
}

}  // namespace reel_test
