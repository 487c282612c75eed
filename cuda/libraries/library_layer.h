#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../../lib/core/target.h"
#include "../../lib/kernels/recurrent.h"

namespace reel::detail::inline REEL_TARGET {

/// A layer over packed steps in forward order. `counts`: the number of rows of each step; the first has one for each
/// example.
struct LibraryLayerForm {
  RecurrentCell cell;
  DType dtype;
  bool differentiable, tf32;
  std::int64_t width, size, batch;
  std::vector<std::int64_t> counts;
};

/// The library's operands and results, all in device memory; those that a cell lacks are null.
struct LibraryLayerForward {
  const void *x, *h_0, *c_0, *weights;
  void *y, *h, *c, *work, *reserve;
};
struct LibraryLayerBackward {
  const void *x, *y, *dy, *h_0, *dh, *c_0, *dc, *weights;
  void *dx, *dh_0, *dc_0, *work;
  void* reserve;   // of the forward pass; it is overwritten
  void* dweights;  // initially zeros; null if not needed
};

/// A layer in the form of a library of the device's vendor.
class LibraryLayer {
 public:
  virtual ~LibraryLayer() = default;

  /// The sizes of its weights, of its workspace, and of the data that it keeps from the forward to the backward pass.
  std::size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
  WeightLayout layout = {};

  virtual void forward(const LibraryLayerForward& given) = 0;
  virtual void backward(const LibraryLayerBackward& given) = 0;
};

/// Returns null if the library does not support the layer.
std::unique_ptr<LibraryLayer> make_library_layer(const LibraryLayerForm& form);

}  // namespace reel::detail::inline REEL_TARGET
