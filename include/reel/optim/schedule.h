#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <reel/location.h>

namespace reel::optim {

/// What the learning rate is at each step, from 0 on: a function of the step and of the group's own rate, `base` below. So it
/// can be looked up, joined with others, and continued from any step. Any function of the two can stand in its place:
///
///     optim::Scheduler scheduler(adam, [](double base, std::int64_t step) { return base / std::sqrt(1.0 + step); });
struct Schedule {
  std::function<double(double base, std::int64_t step)> rate;
  /// What the momentum is; none: it stays.
  std::function<double(std::int64_t step)> momentum = {};

  Schedule() = default;
  template <class F>
    requires std::is_invocable_r_v<double, F&, double, std::int64_t>
  Schedule(F rate) : rate(std::move(rate)) {}
};

// Each function below throws Error for options out of range.

struct StepDecayOptions {
  std::int64_t every = 1;
  double factor = 0.1;
};
/// base · factor^⌊t / every⌋. Source: PyTorch's StepLR.
Schedule step_decay(StepDecayOptions options, Location where = Location::here());

struct MultiStepOptions {
  std::vector<std::int64_t> at;  ///< rising
  double factor = 0.1;
};
/// base · factorⁿ, where n of the steps in `at` are at most t. Source: PyTorch's MultiStepLR.
Schedule multi_step(MultiStepOptions options, Location where = Location::here());

struct ExponentialOptions {
  double factor = 0.95;
};
/// base · factorᵗ. Source: PyTorch's ExponentialLR.
Schedule exponential(ExponentialOptions options = {}, Location where = Location::here());

struct CosineOptions {
  std::int64_t steps = 1;
  double least = 0;  ///< learning rate
};
/// least + (base − least) (1 + cos(π t / steps)) / 2; after `steps` it rises again.
/// Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (ICLR 2017), as PyTorch's
/// CosineAnnealingLR.
Schedule cosine(CosineOptions options, Location where = Location::here());

struct CosineRestartOptions {
  std::int64_t first_period = 1;
  std::int64_t period_factor = 1;  ///< each period is so many times as long as the one before
  double least = 0;                ///< learning rate
};
/// The same from `base` again at the start of each period. Source: PyTorch's CosineAnnealingWarmRestarts.
Schedule cosine_with_restarts(CosineRestartOptions options, Location where = Location::here());

struct WarmUpOptions {
  std::int64_t steps = 5;
  double start = 1.0 / 3, end = 1;  ///< times base
};
/// base · (start + (end − start) min(t / steps, 1)). Source: PyTorch's LinearLR.
Schedule warm_up(WarmUpOptions options = {}, Location where = Location::here());

struct OneCycleOptions {
  std::int64_t steps = 2;  ///< of the whole cycle; the rate of the last one stays
  double highest = 0;      ///< learning rate; 0: the group's own
  double rising = 0.3;     ///< share of the steps until the highest, in (0, 1); at most 1/2 with three phases
  double start_divisor = 25;
  double end_divisor = 1e4;   ///< of the rate at the start
  bool linear = false;        ///< else along half a cosine
  bool three_phases = false;  ///< falls to the rate at the start first, as fast as it rose
  bool cycles_momentum = true;
  double low_momentum = 0.85, high_momentum = 0.95;  ///< where the rate is highest, and where it starts
};
/// Rises from highest / start_divisor to the highest and falls to highest / start_divisor / end_divisor; the momentum goes
/// the other way. Source: Smith and Topin, Super-convergence (2018), as PyTorch's OneCycleLR.
Schedule one_cycle(OneCycleOptions options, Location where = Location::here());

/// How the triangles of a cyclic schedule change: not, by half each time, or by a factor each step.
enum class CycleMode : std::uint8_t { triangular, triangular2, exponential };

struct CyclicOptions {
  double highest = 0;      ///< learning rate, above the lowest
  double lowest = 0;       ///< 0: the group's own
  std::int64_t up = 2000;  ///< steps
  std::int64_t down = 0;   ///< steps; 0: as many as up
  CycleMode mode = CycleMode::triangular;
  double factor = 1;  ///< for CycleMode::exponential
  bool cycles_momentum = true;
  double low_momentum = 0.8, high_momentum = 0.9;
};
/// Rises from the lowest to the highest and falls again, in straight lines; the momentum goes the other way.
/// Source: Smith, Cyclical learning rates for training neural networks (WACV 2017), as PyTorch's CyclicLR.
Schedule cyclic(CyclicOptions options, Location where = Location::here());

/// A schedule for so many steps.
struct SchedulePart {
  Schedule schedule;
  std::int64_t steps = 0;
};
/// One after another, each from its own step 0; the last one goes on for ever. Source: PyTorch's SequentialLR.
Schedule sequence(std::vector<SchedulePart> parts, Location where = Location::here());

/// Each takes what the one before gives for its base: schedules by factors multiply. Source: PyTorch's ChainedScheduler.
Schedule chain(std::vector<Schedule> schedules, Location where = Location::here());

}  // namespace reel::optim
