#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

at::Tensor in_channels_first(Tensors x, Given given) {
  return given.flag("last") ? x[0].movedim(-1, 1).contiguous() : x[0];
}
at::Tensor placed(const at::Tensor& y, Given given) { return given.flag("last") ? y.movedim(1, -1) : y; }

at::Tensor either(const std::tuple<at::Tensor, at::Tensor>& values_and_indices, Given given) {
  const auto& [values, indices] = values_and_indices;
  return given.flag("indices") ? indices : values;
}

template <auto f>
Peer largest(std::int64_t spatial) {
  return [=](Tensors x, Given given) {
    auto repeated = [&](const char* name) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(spatial), given.integer(name));
    };
    return placed(either(f(in_channels_first(x, given), repeated("window"), repeated("stride"), repeated("padding"),
                           repeated("dilation"), given.flag("ceil")),
                         given),
                  given);
  };
}

template <class F>
Peer mapped(F f) {
  return [=](Tensors x, Given given) { return placed(f(in_channels_first(x, given), given), given); };
}

// f(x, indices, sizes), one size for each spatial axis.
template <class F>
Peer unpooled(std::int64_t spatial, F f) {
  return [=](Tensors x, Given given) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(spatial), given.integer("size"));
    bool last = given.flag("last");
    return placed(f(in_channels_first(x, given), last ? x[1].movedim(-1, 1).contiguous() : x[1], sizes), given);
  };
}

}  // namespace

void add_pooling_peers(Peers& peers) {
  for (const char* name : {"max_pool1d", "max_pool1d_with_indices"})
    peers[name] = largest<at::max_pool1d_with_indices>(1);
  for (const char* name : {"max_pool2d", "max_pool2d_with_indices"})
    peers[name] = largest<at::max_pool2d_with_indices>(2);
  for (const char* name : {"max_pool3d", "max_pool3d_with_indices"})
    peers[name] = largest<at::max_pool3d_with_indices>(3);
  peers["avg_pool1d"] = mapped([](const at::Tensor& x, Given given) {
    return at::avg_pool1d(x, given.integer("window"), given.integer("stride"), given.integer("padding"),
                          given.flag("ceil"), given.flag("counts_padding"));
  });
  peers["avg_pool2d"] = mapped([](const at::Tensor& x, Given given) {
    return at::avg_pool2d(x, given.integer("window"), given.integer("stride"), given.integer("padding"),
                          given.flag("ceil"), given.flag("counts_padding"));
  });
  peers["avg_pool3d"] = mapped([](const at::Tensor& x, Given given) {
    return at::avg_pool3d(x, given.integer("window"), given.integer("stride"), given.integer("padding"),
                          given.flag("ceil"), given.flag("counts_padding"));
  });
  peers["adaptive_avg_pool1d"] =
      mapped([](const at::Tensor& x, Given given) { return at::adaptive_avg_pool1d(x, given.integer("window")); });
  peers["adaptive_avg_pool2d"] = mapped([](const at::Tensor& x, Given given) {
    return at::adaptive_avg_pool2d(x, std::vector<std::int64_t>(2, given.integer("window")));
  });
  peers["adaptive_avg_pool3d"] = mapped([](const at::Tensor& x, Given given) {
    return at::adaptive_avg_pool3d(x, std::vector<std::int64_t>(3, given.integer("window")));
  });
  for (const char* name : {"adaptive_max_pool1d", "adaptive_max_pool1d_with_indices"})
    peers[name] = mapped([](const at::Tensor& x, Given given) {
      return either(at::adaptive_max_pool1d(x, given.integer("window")), given);
    });
  for (const char* name : {"adaptive_max_pool2d", "adaptive_max_pool2d_with_indices"})
    peers[name] = mapped([](const at::Tensor& x, Given given) {
      return either(at::adaptive_max_pool2d(x, std::vector<std::int64_t>(2, given.integer("window"))), given);
    });
  for (const char* name : {"adaptive_max_pool3d", "adaptive_max_pool3d_with_indices"})
    peers[name] = mapped([](const at::Tensor& x, Given given) {
      return either(at::adaptive_max_pool3d(x, std::vector<std::int64_t>(3, given.integer("window"))), given);
    });
  using Indices = const at::Tensor&;
  using Sizes = const std::vector<std::int64_t>&;
  peers["max_unpool1d"] = unpooled(1, [](const at::Tensor& x, Indices indices, Sizes sizes) {
    return at::max_unpool2d(x.unsqueeze(-1), indices.unsqueeze(-1), {sizes[0], 1}).squeeze(-1);
  });
  peers["max_unpool2d"] = unpooled(
      2, [](const at::Tensor& x, Indices indices, Sizes sizes) { return at::max_unpool2d(x, indices, sizes); });
  peers["max_unpool3d"] = unpooled(3, [](const at::Tensor& x, Indices indices, Sizes sizes) {
    return at::max_unpool3d(x, indices, sizes, {1, 1, 1}, {0, 0, 0});
  });
}

}  // namespace reel_test
