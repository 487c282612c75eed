#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../lib/core/kernels/recurrent.h"
#include "../lib/core/target.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// A layer from the first of its packed steps to the last. `counts`: how many rows each has; the first has one of each
/// example.
struct LibraryLayerForm {
  RecurrentCell cell;
  DType dtype;
  bool differentiable, tf32;
  std::int64_t width, size, batch;
  std::vector<std::int64_t> counts;
};

/// What the library takes and gives, all in memory of the device; what a cell has not is null.
struct LibraryLayerForward {
  const void *x, *h_0, *c_0, *weights;
  void *y, *h, *c, *work, *reserve;
};
struct LibraryLayerBackward {
  const void *x, *y, *dy, *h_0, *dh, *c_0, *dc, *weights;
  void *dx, *dh_0, *dc_0, *work;
  void* reserve;   // of the forward pass; it is overwritten
  void* dweights;  // zeros at first; null where nobody asks for them
};

/// A layer as a library of the device's maker knows it.
class LibraryLayer {
 public:
  virtual ~LibraryLayer() = default;

  /// Of its weights, of what it works with, and of what it keeps from the forward to the backward pass.
  std::size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
  /// Where among its weights, in elements, W_xᵀ (G H, I), W_hᵀ (G H, H), and biases of x W_x and of h W_h (G H) stand.
  std::int64_t input_weights = 0, state_weights = 0, input_bias = 0, state_bias = 0;

  virtual void forward(const LibraryLayerForward& given) = 0;
  virtual void backward(const LibraryLayerBackward& given) = 0;
};

/// Null where the library has nothing for it.
std::unique_ptr<LibraryLayer> make_library_layer(const LibraryLayerForm& form);

}  // namespace REEL_TARGET
}  // namespace reel::detail
