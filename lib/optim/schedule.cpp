#include <reel/optim/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "option_checks.h"

namespace reel::optim {

using namespace detail;

namespace {

void check_positive(const char* schedule, const char* option, std::int64_t value, Location where) {
  if (value < 1) fail<Error>(schedule, where, "the {} {} is not 1 or more", option, value);
}

void check_momenta(const char* schedule, double low, double high, Location where) {
  check_fraction(schedule, "low momentum", low, where);
  check_fraction(schedule, "high momentum", high, where);
}

void check_given(const char* schedule, const std::vector<Schedule>& schedules, Location where) {
  for (const Schedule& one : schedules)
    if (!one.rate) fail<Error>(schedule, where, "a schedule without a function for the rate is among them");
}

// A half cosine from a to b.
double half_cosine(double a, double b, double share) {
  return b + (a - b) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace

Schedule step_decay(StepDecayOptions options, Location where) {
  check_positive("step_decay", "number of steps", options.every, where);
  check_not_negative("step_decay", "factor", options.factor, where);
  return {[options](double base, std::int64_t step) {
    std::int64_t decays = step / options.every;
    return base * std::pow(options.factor, static_cast<double>(decays));
  }};
}

Schedule multi_step(MultiStepOptions options, Location where) {
  check_not_negative("multi_step", "factor", options.factor, where);
  if (!std::is_sorted(options.at.begin(), options.at.end()))
    fail<Error>("multi_step", where, "the steps are not in rising order");
  return {[options](double base, std::int64_t step) {
    auto passed = std::upper_bound(options.at.begin(), options.at.end(), step) - options.at.begin();
    return base * std::pow(options.factor, static_cast<double>(passed));
  }};
}

Schedule exponential(ExponentialOptions options, Location where) {
  check_not_negative("exponential", "factor", options.factor, where);
  return {
      [options](double base, std::int64_t step) { return base * std::pow(options.factor, static_cast<double>(step)); }};
}

Schedule cosine(CosineOptions options, Location where) {
  check_positive("cosine", "number of steps", options.steps, where);
  check_not_negative("cosine", "least learning rate", options.least, where);
  return {[options](double base, std::int64_t step) {
    return half_cosine(base, options.least, static_cast<double>(step) / static_cast<double>(options.steps));
  }};
}

Schedule cosine_with_restarts(CosineRestartOptions options, Location where) {
  check_positive("cosine_with_restarts", "first period", options.first_period, where);
  check_positive("cosine_with_restarts", "factor of periods", options.period_factor, where);
  check_not_negative("cosine_with_restarts", "least learning rate", options.least, where);
  return {[options](double base, std::int64_t step) {
    std::int64_t period = options.first_period;
    if (options.period_factor == 1) step %= period;
    for (; step >= period; period *= options.period_factor) step -= period;
    return half_cosine(base, options.least, static_cast<double>(step) / static_cast<double>(period));
  }};
}

Schedule warm_up(WarmUpOptions options, Location where) {
  check_positive("warm_up", "number of steps", options.steps, where);
  check_not_negative("warm_up", "start", options.start, where);
  check_not_negative("warm_up", "end", options.end, where);
  return {[options](double base, std::int64_t step) {
    double share = std::min(static_cast<double>(step) / static_cast<double>(options.steps), 1.0);
    return base * (options.start + (options.end - options.start) * share);
  }};
}

namespace {

// The turning points of a one-cycle schedule, and its values: low, high, low and, with three phases, the end.
class OneCycle {
 public:
  explicit OneCycle(const OneCycleOptions& options) : linear_(options.linear), three_(options.three_phases) {
    auto steps = static_cast<double>(options.steps);
    ends_[0] = options.rising * steps - 1;
    ends_[1] = three_ ? 2 * options.rising * steps - 2 : steps - 1;
    ends_[2] = steps - 1;
  }

  double value(std::int64_t step, double low, double high, double end) const {
    double at = std::min(static_cast<double>(step), ends_[2]);
    if (at <= ends_[0]) return between(low, high, 0, ends_[0], at);
    if (!three_) return between(high, end, ends_[0], ends_[1], at);
    if (at <= ends_[1]) return between(high, low, ends_[0], ends_[1], at);
    return between(low, end, ends_[1], ends_[2], at);
  }

 private:
  double between(double from, double to, double start, double stop, double at) const {
    double share = stop > start ? (at - start) / (stop - start) : 1;
    return linear_ ? from + (to - from) * share : half_cosine(from, to, share);
  }

  double ends_[3];
  bool linear_, three_;
};

}  // namespace

Schedule one_cycle(OneCycleOptions options, Location where) {
  constexpr const char* name = "one_cycle";
  if (options.steps < 2) fail<Error>(name, where, "the number of steps {} is not 2 or more", options.steps);
  check_not_negative(name, "highest learning rate", options.highest, where);
  double most = options.three_phases ? 0.5 : 1;
  if (!(options.rising > 0 && options.rising <= most && options.rising < 1))
    fail<Error>(name, where, "the rising share {} lies outside (0, {}", options.rising, most < 1 ? "0.5]" : "1)");
  if (!(options.start_divisor > 0 && options.end_divisor > 0))
    fail<Error>(name, where, "the divisors {} and {} are not above 0", options.start_divisor, options.end_divisor);
  check_momenta(name, options.low_momentum, options.high_momentum, where);
  OneCycle cycle(options);
  Schedule schedule([options, cycle](double base, std::int64_t step) {
    double high = options.highest > 0 ? options.highest : base, low = high / options.start_divisor;
    return cycle.value(step, low, high, low / options.end_divisor);
  });
  if (options.cycles_momentum)
    schedule.momentum = [options, cycle](std::int64_t step) {
      return cycle.value(step, options.high_momentum, options.low_momentum, options.high_momentum);
    };
  return schedule;
}

namespace {

// The height above the lowest value, as a fraction of the range.
double cyclic_height(const CyclicOptions& options, std::int64_t step) {
  auto up = static_cast<double>(options.up), down = static_cast<double>(options.down), t = static_cast<double>(step);
  double cycle = std::floor(t / (up + down)), within = t - cycle * (up + down);
  double height = within <= up ? within / up : 1 - (within - up) / down;
  switch (options.mode) {
    case CycleMode::triangular: return height;
    case CycleMode::triangular2: return height * std::exp2(-cycle);
    case CycleMode::exponential: return height * std::pow(options.factor, t);
  }
  return height;
}

}  // namespace

Schedule cyclic(CyclicOptions options, Location where) {
  constexpr const char* name = "cyclic";
  check_positive(name, "number of steps up", options.up, where);
  if (options.down == 0) options.down = options.up;
  check_positive(name, "number of steps down", options.down, where);
  check_not_negative(name, "lowest learning rate", options.lowest, where);
  if (!(options.highest > options.lowest))
    fail<Error>(name, where, "the highest learning rate {} is not above the lowest, {}", options.highest,
                options.lowest);
  check_not_negative(name, "factor", options.factor, where);
  check_momenta(name, options.low_momentum, options.high_momentum, where);
  Schedule schedule([options](double base, std::int64_t step) {
    double low = options.lowest > 0 ? options.lowest : base;
    return low + (options.highest - low) * cyclic_height(options, step);
  });
  if (options.cycles_momentum)
    schedule.momentum = [options](std::int64_t step) {
      return options.high_momentum - (options.high_momentum - options.low_momentum) * cyclic_height(options, step);
    };
  return schedule;
}

namespace {

// The part to which a step belongs, and the step's index in it.
template <class Parts>
auto part_at(const Parts& parts, std::int64_t step) {
  std::size_t i = 0;
  for (; i + 1 < parts.size() && step >= parts[i].steps; ++i) step -= parts[i].steps;
  return std::pair(std::cref(parts[i].schedule), step);
}

}  // namespace

Schedule sequence(std::vector<SchedulePart> parts, Location where) {
  if (parts.empty()) fail<Error>("sequence", where, "at least one schedule is needed");
  bool momentum = !!parts[0].schedule.momentum;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_given("sequence", {parts[i].schedule}, where);
    if (i + 1 < parts.size()) check_positive("sequence", "number of steps of a part", parts[i].steps, where);
    if (!!parts[i].schedule.momentum != momentum)
      fail<Error>("sequence", where, "either all schedules set the momentum or none; part {} differs", i);
  }
  Schedule schedule([parts](double base, std::int64_t step) {
    auto [part, own] = part_at(parts, step);
    return part.get().rate(base, own);
  });
  if (momentum)
    schedule.momentum = [parts](std::int64_t step) {
      auto [part, own] = part_at(parts, step);
      return part.get().momentum(own);
    };
  return schedule;
}

Schedule chain(std::vector<Schedule> schedules, Location where) {
  check_given("chain", schedules, where);
  decltype(Schedule::momentum) momentum;
  for (const Schedule& one : schedules) {
    if (!one.momentum) continue;
    if (momentum) fail<Error>("chain", where, "more than one schedule sets the momentum");
    momentum = one.momentum;
  }
  Schedule joined([schedules = std::move(schedules)](double base, std::int64_t step) {
    for (const Schedule& one : schedules) base = one.rate(base, step);
    return base;
  });
  joined.momentum = std::move(momentum);
  return joined;
}

}  // namespace reel::optim
