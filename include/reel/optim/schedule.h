#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <reel/location.h>

namespace reel::optim {

/// A learning-rate schedule: a function of the step, from 0 on, and of the group's own rate, `base`. It can be looked
/// up, joined with others, and continued from any step. Any function of the two can be passed as a schedule:
///
///     optim::Scheduler scheduler(adam, [](double base, std::int64_t step) { return base / std::sqrt(1.0 + step); });
struct Schedule {
  std::function<double(double base, std::int64_t step)> rate;  ///< the learning rate of a step
  /// The momentum of a step; null: it stays.
  std::function<double(std::int64_t step)> momentum = {};

  /// A schedule without a rate: an error where it is used.
  Schedule() = default;
  /// A schedule with the given learning rate of each step.
  template <class F>
    requires std::is_invocable_r_v<double, F&, double, std::int64_t>
  Schedule(F rate) : rate(std::move(rate)) {}
};

/// Options of `step_decay`.
struct StepDecayOptions {
  std::int64_t every = 1;  ///< steps from one reduction to the next, at least 1
  double factor = 0.1;     ///< at least 0; default 0.1
};
/// A schedule base · factor^⌊t / every⌋ at step t. Throws: Error for options out of range. Source: PyTorch's StepLR.
Schedule step_decay(StepDecayOptions options, Location where = Location::here());

/// Options of `multi_step`.
struct MultiStepOptions {
  std::vector<std::int64_t> at;  ///< the steps of the reductions, ascending
  double factor = 0.1;           ///< at least 0; default 0.1
};
/// A schedule base · factorⁿ at step t, where n of the steps in `at` are at most t.
/// Throws: Error for options out of range.
/// Source: PyTorch's MultiStepLR.
Schedule multi_step(MultiStepOptions options, Location where = Location::here());

/// Options of `exponential`.
struct ExponentialOptions {
  double factor = 0.95;  ///< at least 0; default 0.95
};
/// A schedule base · factorᵗ at step t. Throws: Error for options out of range. Source: PyTorch's ExponentialLR.
Schedule exponential(ExponentialOptions options = {}, Location where = Location::here());

/// Options of `cosine`.
struct CosineOptions {
  std::int64_t steps = 1;  ///< steps to the least rate, at least 1
  double least = 0;        ///< the least learning rate, default 0
};
/// A schedule least + (base − least) (1 + cos(π t / steps)) / 2 at step t; after `steps` it rises again.
/// Throws: Error for options out of range.
/// Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (ICLR 2017), as PyTorch's
/// CosineAnnealingLR.
Schedule cosine(CosineOptions options, Location where = Location::here());

/// Options of `cosine_with_restarts`.
struct CosineRestartOptions {
  std::int64_t first_period = 1;   ///< steps of the first period, at least 1
  std::int64_t period_factor = 1;  ///< ratio of the length of a period to that of the one before, at least 1
  double least = 0;                ///< the least learning rate, default 0
};
/// A schedule least + (base − least) (1 + cos(π t / period)) / 2, with t from the start of the present period, so that
/// each starts at `base`.
/// Throws: Error for options out of range.
/// Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (ICLR 2017), as PyTorch's
/// CosineAnnealingWarmRestarts.
Schedule cosine_with_restarts(CosineRestartOptions options, Location where = Location::here());

/// Options of `warm_up`.
struct WarmUpOptions {
  std::int64_t steps = 5;  ///< steps until the end is reached, at least 1; default 5
  double start = 1.0 / 3,  ///< the factor of base at step 0; default 1/3
      end = 1;             ///< the factor of base from the last step on; default 1
};
/// A schedule base · (start + (end − start) min(t / steps, 1)) at step t.
/// Throws: Error for options out of range.
/// Source: PyTorch's LinearLR.
Schedule warm_up(WarmUpOptions options = {}, Location where = Location::here());

/// Options of `one_cycle`.
struct OneCycleOptions {
  std::int64_t steps = 2;  ///< steps of the whole cycle, at least 2; the rate of the last one stays
  double highest = 0;      ///< the highest learning rate; 0 (default): the group's own
  /// The share of the steps until the highest rate, in (0, 1), at most 1/2 with three phases; default 0.3.
  double rising = 0.3;
  double start_divisor = 25;    ///< the first rate is the highest divided by this; default 25
  double end_divisor = 1e4;     ///< the last rate is the first divided by this; default 10⁴
  bool linear = false;          ///< changes in straight lines; else along half a cosine (default)
  bool three_phases = false;    ///< falls to the first rate as fast as it rose, then to the last; default false
  bool cycles_momentum = true;  ///< whether the momentum cycles, too; default true
  double low_momentum = 0.85,   ///< the momentum where the rate is highest; default 0.85
      high_momentum = 0.95;     ///< the momentum where the rate starts; default 0.95
};
/// A schedule that rises from highest / start_divisor to the highest rate and falls to highest / start_divisor /
/// end_divisor; the momentum changes in the opposite direction.
/// Throws: Error for options out of range.
/// Source: Smith and Topin, Super-convergence (2018), as PyTorch's OneCycleLR.
Schedule one_cycle(OneCycleOptions options, Location where = Location::here());

/// How the triangles of a cyclic schedule change: not, by half each time, or by a factor each step.
enum class CycleMode : std::uint8_t { triangular, triangular2, exponential };

/// Options of `cyclic`.
struct CyclicOptions {
  double highest = 0;                      ///< the highest learning rate, above the lowest
  double lowest = 0;                       ///< the lowest learning rate; 0 (default): the group's own
  std::int64_t up = 2000;                  ///< steps from the lowest to the highest rate, at least 1; default 2000
  std::int64_t down = 0;                   ///< steps from the highest to the lowest rate; 0 (default): those of `up`
  CycleMode mode = CycleMode::triangular;  ///< default: triangles of one height
  double factor = 1;                       ///< the factor of each step for CycleMode::exponential; default 1
  bool cycles_momentum = true;             ///< whether the momentum cycles, too; default true
  double low_momentum = 0.8,               ///< the momentum where the rate is highest; default 0.8
      high_momentum = 0.9;                 ///< the momentum where the rate is lowest; default 0.9
};
/// A schedule that rises from the lowest to the highest rate and falls again, in straight lines; the momentum changes
/// in the opposite direction.
/// Throws: Error for options out of range.
/// Source: Smith, Cyclical learning rates for training neural networks (WACV 2017), as PyTorch's CyclicLR.
Schedule cyclic(CyclicOptions options, Location where = Location::here());

/// A schedule for a number of steps.
struct SchedulePart {
  Schedule schedule;       ///< counted from its own step 0
  std::int64_t steps = 0;  ///< its steps, at least 1; ignored for the last part of a sequence
};
/// A schedule of several, one after another, each from its own step 0; the last one never ends.
/// Throws: Error for no parts, for numbers of steps out of range, and unless all parts set the momentum or none.
/// Source: PyTorch's SequentialLR.
Schedule sequence(std::vector<SchedulePart> parts, Location where = Location::here());

/// A schedule of several, each of which takes the rate of the one before for its base: schedules by factors multiply.
/// Throws: Error for a schedule without a rate, and if several set the momentum.
/// Source: PyTorch's ChainedScheduler.
Schedule chain(std::vector<Schedule> schedules, Location where = Location::here());

}  // namespace reel::optim
