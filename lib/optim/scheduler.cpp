#include <reel/optim/scheduler.h>

#include <optional>
#include <utility>

#include <reel/ops/create.h>

#include "../core/memory_error.h"
#include "option_checks.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* scheduler_name = "Scheduler";

}  // namespace

Scheduler::Scheduler(Optimiser& optimiser, Schedule schedule, Location where)
    : Scheduler(optimiser, std::vector<Schedule>{std::move(schedule)}, where) {}

Scheduler::Scheduler(Optimiser& optimiser, std::vector<Schedule> schedules, Location where)
    : optimiser_(optimiser), schedules_(std::move(schedules)) {
  if (schedules_.size() != 1 && schedules_.size() != optimiser.group_count())
    fail<Error>(scheduler_name, where, "it needs one schedule, or one for each of the {} groups, not {}",
                optimiser.group_count(), schedules_.size());
  for (const Schedule& schedule : schedules_) {
    if (!schedule.rate) fail<Error>(scheduler_name, where, "a schedule has no function for the rate");
    if (schedule.momentum && !optimiser.has_momentum())
      fail<Error>(scheduler_name, where,
                  "the schedule sets the momentum, of which the optimiser has none; cycles_momentum = false");
  }
  go_to(0, {}, where);
}

void Scheduler::step(Location where) {
  with_memory_error(scheduler_name, where, [&] { go_to(steps_ + 1, bases_, where); });
}

void Scheduler::go_to(std::int64_t steps, std::vector<double> bases, Location where) {
  with_memory_error(scheduler_name, where, [&] {
    std::size_t groups = optimiser_.group_count();
    if (schedules_.size() != 1 && schedules_.size() != groups)
      fail<Error>(scheduler_name, where, "the optimiser has {} groups now, of which {} have a schedule", groups,
                  schedules_.size());
    // Checks that may fail come before the first change.
    std::vector<double> rates;
    std::vector<std::optional<double>> momenta;
    for (std::size_t group = 0; group < groups; ++group) {
      if (group == bases.size()) bases.push_back(optimiser_.rate_parts(group).scheduled);
      const Schedule& schedule = schedules_[schedules_.size() == 1 ? 0 : group];
      rates.push_back(schedule.rate(bases[group], steps));
      check_not_negative(scheduler_name, "learning rate", rates.back(), where);
      std::optional<double> momentum;
      if (schedule.momentum) momentum = schedule.momentum(steps);
      if (momentum) check_fraction(scheduler_name, "momentum", *momentum, where);
      momenta.push_back(momentum);
    }
    for (std::size_t group = 0; group < groups; ++group) {
      optimiser_.put_rate_parts(group, {rates[group], optimiser_.rate_parts(group).factor});
      if (const std::optional<double>& momentum = momenta[group]) optimiser_.set_momentum(group, *momentum, where);
    }
    steps_ = steps;
    bases_ = std::move(bases);
  });
}

std::vector<NamedTensor> Scheduler::state() const { return {{"step", tensor({steps_})}, {"base", tensor(bases_)}}; }

void Scheduler::load_state(std::span<const NamedTensor> state, Location where) {
  StateReader reader(scheduler_name, state, where);
  auto steps = reader.number<std::int64_t>("step");
  auto bases = reader.list<double>("base", optimiser_.group_count());
  reader.finish();
  if (steps < 0) fail<Error>(scheduler_name, where, "the state's 'step' is {}", steps);
  for (double base : bases) check_not_negative(scheduler_name, "learning rate", base, where);
  go_to(steps, std::move(bases), where);
}

void Scheduler::load_state(const std::vector<NamedTensor>& state, Location where) {
  load_state(std::span<const NamedTensor>(state), where);
}

}  // namespace reel::optim
