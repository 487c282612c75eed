#pragma once

#include <cstdint>

#include <reel/device.h>
#include <reel/dtype.h>

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
  /// For a step that a graph records: where the device finds the step's numbers at each replay; null otherwise.
  const void* recorded = nullptr;
};

// The numbers of one step. Everywhere g = gradient + decay · w.

/// v = momentum · v + fresh · g;  w = w − rate (own · g + carried · v)
struct SGDNumbers {
  double decay, momentum, fresh, own, carried, rate;
};
/// m = mean_kept · m + mean_fresh · g;  v = square_kept · v + square_fresh · g²;
/// w = shrink · w − (own · g + carried · m) / (√v · root_factor + epsilon)
struct AdamNumbers {
  double decay, shrink, mean_kept, mean_fresh, square_kept, square_fresh, own, carried, root_factor, epsilon;
};
/// s = s + g²;  w = w − rate · g / (√s + epsilon)
struct AdagradNumbers {
  double decay, rate, epsilon;
};
/// s = kept · s + fresh · g²;  δ = √((a + epsilon) / (s + epsilon)) · g;  a = kept · a + fresh · δ²;  w = w − rate · δ
struct AdadeltaNumbers {
  double decay, kept, fresh, rate, epsilon;
};
/// s = kept · s + fresh · g²;  m = kept · m + fresh · g;  h = g / (√(s − m²) + epsilon);
/// v = momentum · v + h;  w = w − rate · v
struct RMSpropNumbers {
  double decay, kept, fresh, momentum, rate, epsilon;
};
/// m = mean_kept · m + mean_fresh · g;  u = max(largest_kept · u, |g| + epsilon);  w = w − rate · m / u
struct AdamaxNumbers {
  double decay, mean_kept, mean_fresh, largest_kept, rate, epsilon;
};
/// c = step_kept · m + step_fresh · g;  w = shrink · w − rate · sign(c);  m = mean_kept · m + mean_fresh · g, where
/// g is the gradient alone
struct LionNumbers {
  double shrink, step_kept, step_fresh, mean_kept, mean_fresh, rate;
};
/// w = kept · w + fresh · gradient
struct AverageNumbers {
  double kept, fresh;
};

/// Makes one update step with the numbers of its optimiser.
using OptimiserKernel = void (*)(const ParameterSlice& elements, const void* numbers);

/// The fused update loops of one device. Each reads and writes every element once; `kept` holds the state variables in
/// the order of the equations above, or as noted.
struct OptimiserKernels {
  OptimiserKernel sgd;           ///< no state
  OptimiserKernel sgd_momentum;  ///< v
  OptimiserKernel adam;          ///< m, v
  OptimiserKernel adam_largest;  ///< m, v, and the largest v so far, which is used under the root
  OptimiserKernel adagrad;       ///< s
  OptimiserKernel adadelta;      ///< s, a
  /// s, m, v; indexed by whether it is centred and whether it has momentum: without centring m is 0, without momentum v
  /// is h.
  OptimiserKernel rmsprop[2][2];
  OptimiserKernel adamax;   ///< m, u
  OptimiserKernel lion;     ///< m
  OptimiserKernel average;  ///< no state
};

extern constinit OptimiserKernels cpu_optimiser_kernels;

/// The optimiser kernels of a device; makes it the one on which they run. Throws: as `kernels`.
const OptimiserKernels& optimiser_kernels(Device device);
const OptimiserKernels& enter_device_optimisers(Device device);

}  // namespace reel::detail
