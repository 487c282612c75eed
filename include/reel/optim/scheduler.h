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
///     for (const train::Batch& batch : batches) {
///       train_step(batch);  // which ends with adam.step()
///       scheduler.step();
///     }
///
/// The reductions of a Plateau of that optimiser are kept. The optimiser must outlive the scheduler.
class Scheduler {
 public:
  /// Sets the rates of all groups of `optimiser` by one schedule. A group's own rate, `base`, is its present one. Sets
  /// the rates of step 0; those of a group that is added later with the next step.
  /// Throws: Error for a schedule without a rate, one of momenta for an optimiser that has none, and rates that are not
  /// 0 or more.
  Scheduler(Optimiser& optimiser, Schedule schedule, Location where = Location::here());
  /// Sets the rates of the groups of `optimiser` by one schedule each, or by one for all. A group's own rate, `base`,
  /// is its present one. Sets the rates of step 0; those of a group that is added later with the next step.
  /// Throws: Error for a schedule without a rate, one of momenta for an optimiser that has none, a number of schedules
  /// that is neither 1 nor that of the groups, and rates that are not 0 or more.
  Scheduler(Optimiser& optimiser, std::vector<Schedule> schedules, Location where = Location::here());

  /// Sets the rates of the next step: called after a step of the optimiser, or an epoch, whichever the schedule counts.
  /// Throws: Error for rates out of range, and changes nothing then.
  void step(Location where = Location::here());
  /// The present step, from 0.
  std::int64_t steps() const { return steps_; }

  /// Copies of all that the scheduler keeps: "step", and "base" of each group.
  std::vector<NamedTensor> state() const;
  /// Restores what `state()` gave, and sets the rates, times the reductions of a Plateau; states of the optimiser, of a
  /// Plateau and of this may be loaded in any order. After an exception nothing has changed.
  /// Throws: Error for a name that is missing or unknown, or a value out of range; ShapeError or DTypeError for a
  /// tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());
  /// Restores what `state()` gave, and sets the rates, times the reductions of a Plateau; states of the optimiser, of a
  /// Plateau and of this may be loaded in any order. After an exception nothing has changed.
  /// Throws: Error for a name that is missing or unknown, or a value out of range; ShapeError or DTypeError for a
  /// tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here());

 private:
  // Computes and sets the rates of a step, which becomes the present one.
  void go_to(std::int64_t steps, std::vector<double> bases, Location where);

  Optimiser& optimiser_;
  std::vector<Schedule> schedules_;
  std::vector<double> bases_;
  std::int64_t steps_ = 0;
};

}  // namespace reel::optim
