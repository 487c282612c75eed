#include <reel/optim/plateau.h>

#include <algorithm>
#include <cmath>

#include <reel/ops/create.h>

#include "option_checks.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* plateau_name = "Plateau";
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

Plateau::Plateau(Optimiser& optimiser, PlateauOptions options, Location where)
    : optimiser_(optimiser), options_(options), best_(options.larger_is_better ? -infinity : infinity) {
  if (!(options.factor > 0 && options.factor < 1))
    fail<Error>(plateau_name, where, "the factor {} lies outside (0, 1)", options.factor);
  if (options.patience < 0 || options.cooldown < 0)
    fail<Error>(plateau_name, where, "the patience {} and the cooldown {} are not both 0 or more", options.patience,
                options.cooldown);
  check_not_negative(plateau_name, "threshold", options.threshold, where);
  check_not_negative(plateau_name, "least learning rate", options.least, where);
  check_not_negative(plateau_name, "epsilon", options.epsilon, where);
}

bool Plateau::is_better(double metric) const {
  double sign = options_.larger_is_better ? 1 : -1;
  if (!options_.relative) return sign * metric > sign * best_ + options_.threshold;
  // A relative threshold of an infinite value would be NaN.
  return sign * metric > sign * best_ * (1 + sign * options_.threshold);
}

bool Plateau::step(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return false;
  cooldown_left_ = options_.cooldown;
  bad_steps_ = 0;
  return reduce();
}

bool Plateau::reduce() {
  bool any = false;
  for (std::size_t group = 0; group < optimiser_.group_count(); ++group) {
    double before = optimiser_.learning_rate(group), after = std::max(before * options_.factor, options_.least);
    if (before - after <= options_.epsilon) continue;
    double scheduled = optimiser_.rate_parts(group).scheduled;
    optimiser_.put_rate_parts(group, {scheduled, after / scheduled});
    any = true;
  }
  return any;
}

std::vector<NamedTensor> Plateau::state() const {
  return {{"best", tensor({best_})}, {"bad_steps", tensor({bad_steps_})}, {"cooldown", tensor({cooldown_left_})}};
}

void Plateau::load_state(std::span<const NamedTensor> state, Location where) {
  StateReader reader(plateau_name, state, where);
  auto best = reader.number<double>("best");
  auto bad_steps = reader.number<std::int64_t>("bad_steps"), cooldown = reader.number<std::int64_t>("cooldown");
  reader.finish();
  if (std::isnan(best)) fail<Error>(plateau_name, where, "the state's 'best' is NaN");
  if (bad_steps < 0 || cooldown < 0)
    fail<Error>(plateau_name, where, "the state's 'bad_steps' {} and 'cooldown' {} are not both 0 or more", bad_steps,
                cooldown);
  best_ = best;
  bad_steps_ = bad_steps;
  cooldown_left_ = cooldown;
}

void Plateau::load_state(const std::vector<NamedTensor>& state, Location where) {
  load_state(std::span<const NamedTensor>(state), where);
}

}  // namespace reel::optim
