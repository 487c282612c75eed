#pragma once

#include <limits>
#include <span>
#include <vector>

#include <reel/optim/optimiser.h>

namespace reel::optim {

struct PlateauOptions {
  double factor = 0.1;         ///< in (0, 1)
  std::int64_t patience = 10;  ///< so many steps in a row may be no better
  double threshold = 1e-4;     ///< how much better counts
  bool relative = true;        ///< … as a share of the best so far; else by itself
  bool larger_is_better = false;
  std::int64_t cooldown = 0;  ///< steps after a reduction that do not count
  double least = 0;           ///< learning rate
  double epsilon = 1e-8;      ///< smaller reductions are not made
};

/// Reduces the learning rate of all groups when a metric stops to improve: rate = max(factor · rate, least). A Scheduler of
/// the optimiser goes on from there: from then on, its rates are multiplied by what was reduced, until
/// `set_learning_rate`. The optimiser has to outlive it. Throws: Error for options out of range. Source: PyTorch's ReduceLROnPlateau.
class Plateau {
 public:
  explicit Plateau(Optimiser& optimiser, PlateauOptions options = {}, Location where = Location::here());

  /// Takes the metric of another step or epoch; NaN is no better. True if it has reduced a rate.
  bool step(double metric);
  /// The best metric so far; an infinity before the first.
  double best() const { return best_; }

  /// "best", "bad_steps", "cooldown"; rates, and what they were reduced by, are in the optimiser's state.
  std::vector<nn::NamedTensor> state() const;
  /// Goes on there; states of the optimiser, of a Scheduler and of this may be loaded in any order.
  /// Throws: as Optimiser::load_state.
  void load_state(std::span<const nn::NamedTensor> state, Location where = Location::here());
  void load_state(const std::vector<nn::NamedTensor>& state, Location where = Location::here());

 private:
  bool is_better(double metric) const;
  bool reduce();

  Optimiser& optimiser_;
  PlateauOptions options_;
  double best_;
  std::int64_t bad_steps_ = 0, cooldown_left_ = 0;
};

}  // namespace reel::optim
