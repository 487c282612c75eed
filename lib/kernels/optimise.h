#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include <reel/device.h>
#include <reel/dtype.h>

#include "../core/target.h"

// The update steps of the optimisers, each declared in a row of a list, from which each device makes its kernels. Their
// bodies are in formulas/update_step.h.

namespace reel::detail {

// The numbers of one step. Everywhere g = gradient + decay · w.

/// v = momentum · v + added · g;  w = w − rate (gradient_factor · g + state_factor · v)
struct SGDNumbers {
  double decay, momentum, added, gradient_factor, state_factor, rate;
};
/// m = mean_kept · m + mean_added · g;  v = square_kept · v + square_added · g²;
/// w = shrink · w − (gradient_factor · g + state_factor · m) / (√v · root_factor + epsilon)
struct AdamNumbers {
  double decay, shrink, mean_kept, mean_added, square_kept, square_added, gradient_factor, state_factor, root_factor,
      epsilon;
};
/// s = s + g²;  w = w − rate · g / (√s + epsilon)
struct AdagradNumbers {
  double decay, rate, epsilon;
};
/// s = kept · s + added · g²;  δ = √((a + epsilon) / (s + epsilon)) · g;  a = kept · a + added · δ²;  w = w − rate · δ
struct AdadeltaNumbers {
  double decay, kept, added, rate, epsilon;
};
/// s = kept · s + added · g²;  m = kept · m + added · g;  h = g / (√(s − m²) + epsilon);
/// v = momentum · v + h;  w = w − rate · v
struct RMSpropNumbers {
  double decay, kept, added, momentum, rate, epsilon;
};
/// m = mean_kept · m + mean_added · g;  u = max(largest_kept · u, |g| + epsilon);  w = w − rate · m / u
struct AdamaxNumbers {
  double decay, mean_kept, mean_added, largest_kept, rate, epsilon;
};
/// c = step_kept · m + step_added · g;  w = shrink · w − rate · sign(c);  m = mean_kept · m + mean_added · g, where
/// g is the gradient alone
struct LionNumbers {
  double shrink, step_kept, step_added, mean_kept, mean_added, rate;
};
/// s = 1 at the first step, else min(grow · s, most), max(shrink · s, least) or s where gradient · b is above, below or at
/// 0;  b = gradient, but 0 where the product is below 0;  w = w − rate · s · sign(b)
struct RpropNumbers {
  double rate, shrink, grow, least, most, first;
};
/// w = kept · w + added · gradient
struct AverageNumbers {
  double kept, added;
};
/// w = factor · w; the gradient is not read
struct ScaleNumbers {
  double factor;
};
/// w = w cut to [−limit, limit], NaN if it is NaN; the gradient is not read
struct CutNumbers {
  double limit;
};

}  // namespace reel::detail

namespace reel::detail::inline REEL_TARGET {

/// A formula with its numbers and the state variables that it takes, in their order, by their places in
/// ParameterSlice::kept.
template <class F, class N, int... kept>
struct UpdateRow {
  using Formula = F;
  using Numbers = N;
};
template <class... Rows>
struct UpdateList {};

}  // namespace reel::detail::inline REEL_TARGET

namespace reel::formulas::inline REEL_TARGET {

using detail::UpdateRow;

// clang-format off
using UpdateSteps = detail::UpdateList<
    UpdateRow<struct Sgd, detail::SGDNumbers>,
    UpdateRow<struct SgdMomentum, detail::SGDNumbers, 0>,
    UpdateRow<struct Adam, detail::AdamNumbers, 0, 1>,
    UpdateRow<struct AmsGrad, detail::AdamNumbers, 0, 1, 2>,
    UpdateRow<struct Adagrad, detail::AdagradNumbers, 0>,
    UpdateRow<struct Adadelta, detail::AdadeltaNumbers, 0, 1>,
    UpdateRow<struct Rmsprop, detail::RMSpropNumbers, 0>,
    UpdateRow<struct RmspropMomentum, detail::RMSpropNumbers, 0, 2>,
    UpdateRow<struct RmspropCentred, detail::RMSpropNumbers, 0, 1>,
    UpdateRow<struct RmspropCentredMomentum, detail::RMSpropNumbers, 0, 1, 2>,
    UpdateRow<struct Adamax, detail::AdamaxNumbers, 0, 1>,
    UpdateRow<struct Lion, detail::LionNumbers, 0>,
    UpdateRow<struct Rprop, detail::RpropNumbers, 0, 1>,
    UpdateRow<struct Average, detail::AverageNumbers>,
    UpdateRow<struct Scale, detail::ScaleNumbers>,
    UpdateRow<struct Cut, detail::CutNumbers>>;
// clang-format on

}  // namespace reel::formulas::inline REEL_TARGET

namespace reel::detail::inline REEL_TARGET {

template <class F, class... Rows>
constexpr int find_update(UpdateList<Rows...>) {
  constexpr bool is_it[] = {std::is_same_v<F, typename Rows::Formula>...};
  int place = 0;
  while (!is_it[place]) ++place;
  return place;
}
/// The place of a formula's kernel in OptimiserKernels.
template <class F>
inline constexpr int update_place = find_update<F>(formulas::UpdateSteps());

template <class... Rows>
std::tuple<typename Rows::Numbers...> numbers_of(UpdateList<Rows...>);
/// The numbers of a formula.
template <class F>
using NumbersOf = std::tuple_element_t<update_place<F>, decltype(numbers_of(formulas::UpdateSteps()))>;

}  // namespace reel::detail::inline REEL_TARGET

namespace reel::detail {

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
  decltype(kernels_of(formulas::UpdateSteps())) kernels;
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

}  // namespace reel::detail
