#pragma once

#include <vector>

#include "cuda/gpu.h"
#include "ops/table/row_checks.h"

// Rows of the op table on a device.

namespace reel_test {

inline std::vector<reel::Tensor> on(reel::Device device, const std::vector<reel::Tensor>& tensors) {
  std::vector<reel::Tensor> moved;
  for (const reel::Tensor& tensor : tensors) moved.push_back(to(tensor, device));
  return moved;
}

/// The row with its captured tensors on the device, such as offsets and targets.
inline Row on_device(const Row& row) {
  Row guarded = row;
  guarded.run = [run = row.run](std::span<const reel::Tensor> x) {
    reel::DeviceGuard guard(gpu);
    return run(x);
  };
  return guarded;
}

/// False for rows that read or write elements by pointer, which a device forbids.
inline bool runs_on_device(const Row& row) { return row.op != "data" && row.op != "write" && row.op != "item"; }

}  // namespace reel_test
