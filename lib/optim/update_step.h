#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "../kernels/optimise.h"

namespace reel::detail {

/// A fused update loop with its numbers for one step.
struct UpdateStep {
  OptimiserKernel kernel;
  alignas(double) std::byte numbers[10 * sizeof(double)];

  template <class Numbers>
  UpdateStep(OptimiserKernel kernel, const Numbers& given) : kernel(kernel) {
    static_assert(sizeof(Numbers) <= sizeof numbers && std::is_trivially_copyable_v<Numbers>);
    std::memcpy(numbers, &given, sizeof given);
  }
};

}  // namespace reel::detail
