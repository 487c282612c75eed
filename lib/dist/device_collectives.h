#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <reel/tensor.h>

namespace reel::detail {

/// Copies bytes of rank 0 to all ranks.
using BroadcastBytes = std::function<void(void* bytes, std::size_t count)>;

/// Exchanges of tensors between the GPUs of several ranks, in the order of the GPU's queue.
class DeviceCollectives {
 public:
  virtual ~DeviceCollectives() = default;
  /// Overwrites a contiguous tensor with the sums over all ranks.
  virtual void all_reduce(Tensor& x) = 0;
  /// Overwrites a contiguous tensor with that of a rank.
  virtual void broadcast(Tensor& x, int root) = 0;
};

/// Opens libreel_nccl.so; null if rank 0 has none. Throws: DeviceError if only rank 0 has one.
std::unique_ptr<DeviceCollectives> open_device_collectives(int rank, int size, const BroadcastBytes& broadcast);

}  // namespace reel::detail
