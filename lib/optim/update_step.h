#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "../kernels/optimise.h"

namespace reel::detail {

/// A fused update loop with its numbers for one step.
class UpdateStep {
 public:
  /// The step of a formula with its numbers, on a device.
  template <class F>
  static UpdateStep of(Device device, const NumbersOf<F>& numbers) {
    return {kernel_of<F>(optimiser_kernels(device)), numbers};
  }

  /// Updates all slices, which are on the device; for `recorded` see OptimiserKernel.
  void operator()(std::span<const ParameterSlice> slices, const void* recorded = nullptr) const {
    run_(*this, slices, recorded);
  }
  bool has_kernel_of(const UpdateStep& other) const { return kernel_ == other.kernel_; }
  friend bool operator==(const UpdateStep& a, const UpdateStep& b) {
    return a.has_kernel_of(b) && std::memcmp(a.numbers_, b.numbers_, sizeof a.numbers_) == 0;
  }
  /// The bytes that a graph which repeats the step copies to its device.
  std::span<const std::byte> numbers() const { return numbers_; }

 private:
  template <class Numbers>
  UpdateStep(OptimiserKernel<Numbers> kernel, const Numbers& numbers)
      : kernel_(reinterpret_cast<void (*)()>(kernel)), run_(run<Numbers>) {
    static_assert(sizeof numbers <= sizeof numbers_ && std::is_trivially_copyable_v<Numbers>);
    std::memcpy(numbers_, &numbers, sizeof numbers);
  }
  // The one place where the kernel is of another type than its own.
  template <class Numbers>
  static void run(const UpdateStep& step, std::span<const ParameterSlice> slices, const void* recorded) {
    Numbers numbers;
    std::memcpy(&numbers, step.numbers_, sizeof numbers);
    reinterpret_cast<OptimiserKernel<Numbers>>(step.kernel_)(slices, numbers, recorded);
  }

  void (*kernel_)();
  void (*run_)(const UpdateStep&, std::span<const ParameterSlice>, const void*);
  alignas(double) std::byte numbers_[10 * sizeof(double)] = {};
};

}  // namespace reel::detail
