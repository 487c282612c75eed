#pragma once

#include <limits>
#include <span>
#include <vector>

#include <reel/optim/optimiser.h>

namespace reel::optim {

/// Options of Plateau.
struct PlateauOptions {
  double factor = 0.1;            ///< the factor of a reduction, in (0, 1); default 0.1
  std::int64_t patience = 10;     ///< steps in a row without improvement that are tolerated; at least 0, default 10
  double threshold = 1e-4;        ///< the least change that is an improvement; default 1e-4
  bool relative = true;           ///< whether `threshold` is a share of the best metric so far; default true
  bool larger_is_better = false;  ///< default false: the metric is to become smaller
  std::int64_t cooldown = 0;      ///< steps after a reduction that are not counted; at least 0, default 0
  double least = 0;               ///< the least learning rate; default 0
  double epsilon = 1e-8;          ///< reductions by less than this are not made; default 1e-8
};

/// Reduces the learning rate of all groups when a metric stops improving: rate = max(factor · rate, least). The rates
/// of a Scheduler of that optimiser are multiplied by the reductions, until `set_learning_rate`. The optimiser must
/// outlive it.
/// Source: PyTorch's ReduceLROnPlateau.
class Plateau {
 public:
  /// Reduces the rates of `optimiser`. Throws: Error for options out of range.
  explicit Plateau(Optimiser& optimiser, PlateauOptions options = {}, Location where = Location::here());

  /// Takes the metric of another step or epoch; NaN is no improvement. Returns true if it has reduced a rate.
  bool step(double metric);
  /// The best metric so far; before the first, the infinity that any metric improves.
  double best() const { return best_; }

  /// Copies of all that it keeps: "best", "bad_steps", "cooldown"; the rates, and their reductions, are in the
  /// optimiser's state.
  std::vector<NamedTensor> state() const;
  /// Restores what `state()` gave; states of the optimiser, of a Scheduler and of this may be loaded in any order.
  /// After an exception nothing has changed.
  /// Throws: Error for a name that is missing or unknown, or a value out of range; ShapeError or DTypeError for a
  /// tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());
  /// Restores what `state()` gave; states of the optimiser, of a Scheduler and of this may be loaded in any order.
  /// After an exception nothing has changed.
  /// Throws: Error for a name that is missing or unknown, or a value out of range; ShapeError or DTypeError for a
  /// tensor that does not fit.
  void load_state(const std::vector<NamedTensor>& state, Location where = Location::here());

 private:
  bool is_better(double metric) const;
  bool reduce();

  Optimiser& optimiser_;
  PlateauOptions options_;
  double best_;
  std::int64_t bad_steps_ = 0, cooldown_left_ = 0;
};

}  // namespace reel::optim
