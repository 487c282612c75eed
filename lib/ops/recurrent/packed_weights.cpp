#include "packed_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <reel/no_record.h>

#include "../../core/device/device_module.h"
#include "../../core/parameter_version.h"
#include "../../core/per_thread.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"

namespace reel::detail {
namespace {

struct PackAttributes {
  NetAttributes net;
  WeightLayout layout;
};

void run_pack(Call& call) {
  const auto& attributes = call.attributes<PackAttributes>();
  WeightOperand W_x(call, call.input(0), attributes.net.rounding()),
      W_h(call, call.input(1), attributes.net.rounding());
  kernels(call.output().device)
      .recurrent->pack_weights({.cell = attributes.net.cell(),
                                .layout = attributes.layout,
                                .packed = call.output(),
                                .W_x = W_x.body(),
                                .W_h = W_h.body(),
                                .bias = call.input(2)});
}

Tensor pack(NetAttributes net, const FusedLayerSizes& sizes, const KernelWeights& weights, Location where) {
  NoRecord pause;
  PackAttributes attributes{net, sizes.layout};
  Shape bytes{sizes.weights};
  return invoke(pack_weights_op, {&weights.W_x, &weights.W_h, &weights.bias}, {bytes, DType::u8, weights.W_x.device()},
                where, bytes_of(attributes));
}

// Elements of a parameter, whatever version they have.
struct Part {
  std::uint32_t number = 0;  // of the parameter; 0: a missing bias
  DType dtype{};
  const void* data = nullptr;
  std::array<std::int64_t, 2> dims{}, strides{};
  bool operator==(const Part&) const = default;
};

struct Identity {
  RecurrentCell cell;
  DType dtype, rounding;
  std::int64_t bytes;
  WeightLayout layout;
  std::array<Part, 3> parts;
  bool operator==(const Identity&) const = default;
};
using Versions = std::array<std::uint32_t, 3>;

// Returns false if the elements are not those of a parameter, or are being written.
bool find_part(Part& part, std::uint32_t& version, const Tensor& x) {
  if (!x.defined()) return true;
  const Body& body = x.body();
  ParameterVersion found = version_of(body);
  if (found.number == 0) return false;
  part.number = found.number;
  part.dtype = body.dtype;
  part.data = body.data;
  std::copy_n(body.dims, body.rank, part.dims.begin());
  std::copy_n(body.strides, body.rank, part.strides.begin());
  version = found.version;
  return true;
}

// A thread's cache of packed weights. A parameter that was freed is not requested again, because no other has its id, and
// is evicted in time.
class PackedLayers {
 public:
  /// Undefined if these versions are not packed; an older version is released, so that its memory serves the new one.
  Tensor find(const Identity& identity, const Versions& versions) {
    auto found = std::ranges::find(layers_, identity, &Layer::identity);
    if (found == layers_.end()) return {};
    found->last_use = ++uses_;
    if (found->versions == versions) return found->packed;
    layers_.erase(found);
    return {};
  }
  void keep(const Identity& identity, const Versions& versions, const Tensor& packed) {
    layers_.push_back({identity, versions, packed, ++uses_});
    evict();
  }

 private:
  static constexpr std::int64_t most_bytes = std::int64_t{1} << 28;
  static constexpr std::size_t most_layers = 64;

  struct Layer {
    Identity identity;
    Versions versions;
    Tensor packed;
    std::uint64_t last_use;
  };

  void evict() {
    auto bytes = [&] {
      std::int64_t sum = 0;
      for (const Layer& layer : layers_) sum += layer.identity.bytes;
      return sum;
    };
    while (layers_.size() > most_layers || (!layers_.empty() && bytes() > most_bytes))
      layers_.erase(std::ranges::min_element(layers_, {}, &Layer::last_use));
  }

  std::vector<Layer> layers_;
  std::uint64_t uses_ = 0;
};

constinit PerThread<PackedLayers> packed_layers;

}  // namespace

constexpr OpInfo pack_weights_op{
    .name = "pack_recurrent_weights", .forward = run_pack, .internal = true, .needs_device = true};

Tensor packed_weights(NetAttributes net, const FusedLayerSizes& sizes, const KernelWeights& weights,
                      const RecurrentWeights& given, Location where) {
  Identity identity{net.cell(), weights.W_x.dtype(), net.rounding(), sizes.weights, sizes.layout, {}};
  Versions versions{};
  if (recording_module() || !find_part(identity.parts[0], versions[0], given.W_x) ||
      !find_part(identity.parts[1], versions[1], given.W_h) || !find_part(identity.parts[2], versions[2], given.bias))
    return pack(net, sizes, weights, where);
  if (Tensor found = packed_layers.get().find(identity, versions); found.defined()) return found;
  Tensor packed = pack(net, sizes, weights, where);
  packed_layers.get().keep(identity, versions, packed);
  return packed;
}

}  // namespace reel::detail
