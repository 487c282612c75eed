#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include <reel/device.h>
#include <reel/dtype.h>

#include "formulas/update_step.h"

namespace reel::detail {

struct KernelTable;

/// A contiguous part of a parameter, f32 or f64, with its gradient and its optimiser state.
struct ParameterSlice {
  static constexpr int most_kept = 3;

  DType dtype;
  std::int64_t count;
  void* values;
  const void* gradient;
  void* kept[most_kept];
};

/// Makes an update step of all slices with the numbers of its formula. `recorded`: for a step that a graph records, where
/// the device finds the numbers at each replay; null otherwise.
template <class Numbers>
using OptimiserKernel = void (*)(std::span<const ParameterSlice> slices, const Numbers& numbers, const void* recorded);

template <class... Rows>
std::tuple<OptimiserKernel<typename Rows::Numbers>...> kernels_of(UpdateList<Rows...>);

/// The elements of a contiguous tensor of f32 or f64.
struct TensorSlice {
  DType dtype;
  std::int64_t count;
  const void* values;
};

/// The fused update loops of one device, in the order of the list of update steps. Each reads and writes every element
/// once.
struct OptimiserKernels {
  decltype(kernels_of(UpdateSteps())) kernels;
  /// norm[0] = √Σx² over all elements of all tensors, which are of one dtype. Neither overflows nor underflows. Null on
  /// the CPU.
  void (*norm)(double* norm, std::span<const TensorSlice> tensors);
};

/// The kernel of a formula.
template <class F>
auto& kernel_of(OptimiserKernels& table) {
  return std::get<update_place<F>>(table.kernels);
}
template <class F>
const auto& kernel_of(const OptimiserKernels& table) {
  return std::get<update_place<F>>(table.kernels);
}

extern constinit OptimiserKernels cpu_optimiser_kernels;

/// The optimiser kernels of a device; makes it the one on which they run. Throws: as `kernels`.
const OptimiserKernels& optimiser_kernels(Device device);
const OptimiserKernels& enter_device_optimisers(Device device);

}  // namespace reel::detail
