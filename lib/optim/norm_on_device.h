#pragma once

#include <span>
#include <vector>

#include <reel/tensor.h>

#include "../core/context.h"
#include "../core/device/device_module.h"
#include "../core/storage.h"
#include "../kernels/kernel_table.h"
#include "../kernels/optimise.h"

namespace reel::detail {

/// √Σx² over all elements of contiguous tensors of one dtype, f32 or f64, on one device other than the CPU: a scalar of
/// f64 there. Neither overflows nor underflows. `op`: the function in whose name memory is allocated.
inline Tensor norm_on_device(const char* op, std::span<const Tensor> tensors, Location where) {
  Device device = tensors[0].device();
  Tensor norm = allocate(context(), {Shape{}, DType::f64, device}, op, where);
  std::vector<TensorSlice> slices;
  for (const Tensor& x : tensors) {
    prepare_on_device(x.body(), false);
    slices.push_back({x.dtype(), x.numel(), x.body().data});
  }
  optimiser_kernels(device).norm(static_cast<double*>(norm.body().data), slices);
  return norm;
}

}  // namespace reel::detail
