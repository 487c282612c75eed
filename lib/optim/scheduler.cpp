#include <reel/optim/scheduler.h>

#include <utility>

#include <reel/ops/create.h>

#include "option_checks.h"
#include "state_reader.h"

namespace reel::optim {

using namespace detail;

namespace {

constexpr const char* name = "Scheduler";

}  // namespace

Scheduler::Scheduler(Optimiser& optimiser, Schedule schedule, Location where)
    : Scheduler(optimiser, std::vector<Schedule>{std::move(schedule)}, where) {}

Scheduler::Scheduler(Optimiser& optimiser, std::vector<Schedule> schedules, Location where)
    : optimiser_(optimiser), schedules_(std::move(schedules)) {
  if (schedules_.size() != 1 && schedules_.size() != optimiser.group_count())
    fail<Error>(name, where, "it needs one schedule, or one for each of the {} groups, not {}", optimiser.group_count(),
                schedules_.size());
  for (const Schedule& schedule : schedules_) {
    if (!schedule.rate) fail<Error>(name, where, "a schedule has no function for the rate");
    if (schedule.momentum && !optimiser.has_momentum())
      fail<Error>(name, where,
                  "the schedule sets the momentum, of which the optimiser has none; cycles_momentum = false");
  }
  set_rates(where);
}

void Scheduler::step(Location where) {
  ++steps_;
  set_rates(where);
}

void Scheduler::set_rates(Location where) {
  if (schedules_.size() != 1 && schedules_.size() != optimiser_.group_count())
    fail<Error>(name, where, "the optimiser has {} groups now, of which {} have a schedule", optimiser_.group_count(),
                schedules_.size());
  for (std::size_t group = 0; group < optimiser_.group_count(); ++group) {
    if (group == bases_.size()) bases_.push_back(optimiser_.learning_rate(group));
    const Schedule& schedule = schedules_[schedules_.size() == 1 ? 0 : group];
    optimiser_.set_learning_rate(group, schedule.rate(bases_[group], steps_), where);
    if (schedule.momentum) optimiser_.set_momentum(group, schedule.momentum(steps_), where);
  }
}

std::vector<nn::NamedTensor> Scheduler::state() const { return {{"step", tensor({steps_})}, {"base", tensor(bases_)}}; }

void Scheduler::load_state(std::span<const nn::NamedTensor> state, Location where) {
  StateReader reader(name, state, where);
  auto steps = reader.number<std::int64_t>("step");
  auto bases = reader.list<double>("base", optimiser_.group_count());
  reader.finish();
  if (steps < 0) fail<Error>(name, where, "the state's 'step' is {}", steps);
  for (double base : bases) check_not_negative(name, "learning rate", base, where);
  steps_ = steps;
  bases_ = std::move(bases);
  set_rates(where);
}

void Scheduler::load_state(const std::vector<nn::NamedTensor>& state, Location where) {
  load_state(std::span<const nn::NamedTensor>(state), where);
}

}  // namespace reel::optim
