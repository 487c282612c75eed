#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

at::Tensor in_channels_first(Tensors x, Given given) {
  return given.flag("last") ? x[0].movedim(-1, 1).contiguous() : x[0];
}
at::Tensor placed(const at::Tensor& y, Given given) { return given.flag("last") ? y.movedim(1, -1) : y; }

template <auto f>
Peer largest(std::int64_t spatial) {
  return [=](Tensors x, Given given) {
    auto repeated = [&](const char* name) {
      return std::vector<std::int64_t>(static_cast<std::size_t>(spatial), given.integer(name));
    };
    auto [values, indices] = f(in_channels_first(x, given), repeated("window"), repeated("stride"), repeated("padding"),
                               repeated("dilation"), given.flag("ceil"));
    return placed(given.flag("indices") ? indices : values, given);
  };
}

template <class F>
Peer mapped(F f) {
  return [=](Tensors x, Given given) { return placed(f(in_channels_first(x, given), given), given); };
}

}  // namespace

void add_pool_peers(Peers& peers) {
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
  peers["adaptive_max_pool1d"] = mapped([](const at::Tensor& x, Given given) {
    return std::get<0>(at::adaptive_max_pool1d(x, given.integer("window")));
  });
  peers["adaptive_max_pool2d"] = mapped([](const at::Tensor& x, Given given) {
    return std::get<0>(at::adaptive_max_pool2d(x, std::vector<std::int64_t>(2, given.integer("window"))));
  });
  peers["adaptive_max_pool3d"] = mapped([](const at::Tensor& x, Given given) {
    return std::get<0>(at::adaptive_max_pool3d(x, std::vector<std::int64_t>(3, given.integer("window"))));
  });
}

}  // namespace reel_test
