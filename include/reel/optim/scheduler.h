#pragma once

#include <span>
#include <vector>

#include <reel/optim/optimiser.h>
#include <reel/optim/schedule.h>

namespace reel::optim {

/// Sets the learning rate of each group by a schedule, and the momentum where the schedule has one.
///
///     optim::Scheduler scheduler(adam, optim::sequence({{optim::warm_up({.steps = 100}), 100},
///                                                       {optim::cosine({.steps = 900})}}));
///     for (…) {
///       …
///       adam.step();
///       scheduler.step();
///     }
///
/// What a Plateau of the same optimiser has reduced stays reduced. The optimiser has to outlive it.
class Scheduler {
 public:
  /// One schedule for all groups, or one for each; a group's own rate is what it has now. Sets the rates of step 0; of a
  /// group that is added later with the next step.
  /// Throws: Error for a schedule without a rate, one of momenta for an optimiser that has none, a number of schedules
  /// that is neither 1 nor that of the groups, and rates that are not 0 or more.
  Scheduler(Optimiser& optimiser, Schedule schedule, Location where = Location::here());
  Scheduler(Optimiser& optimiser, std::vector<Schedule> schedules, Location where = Location::here());

  /// Sets the rates of the next step: after a step of the optimiser, or an epoch, whatever the schedule counts.
  /// Throws: Error for rates out of range; and changes nothing then.
  void step(Location where = Location::here());
  std::int64_t steps() const { return steps_; }

  /// "step", and "base" of each group.
  std::vector<nn::NamedTensor> state() const;
  /// Goes on there, and sets its rates, times what a Plateau has reduced; states of the optimiser, of a Plateau and of this
  /// may be loaded in any order. Throws: as Optimiser::load_state.
  void load_state(std::span<const nn::NamedTensor> state, Location where = Location::here());
  void load_state(const std::vector<nn::NamedTensor>& state, Location where = Location::here());

 private:
  // Works out and sets the rates of a step, and is there.
  void go_to(std::int64_t steps, std::vector<double> bases, Location where);

  Optimiser& optimiser_;
  std::vector<Schedule> schedules_;
  std::vector<double> bases_;
  std::int64_t steps_ = 0;
};

}  // namespace reel::optim
