#pragma once

#include <limits>
#include <vector>

#include <reel/error.h>
#include <reel/nn/module.h>

namespace reel::train {

/// A training run has a loss, a score or a weight that is NaN or infinite.
class DivergedError : public Error {
  using Error::Error;
};

/// Throws: DivergedError unless the loss is finite. Before the optimiser's step, it keeps the weights finite, too.
void check_loss(double loss, Location where = Location::here());

/// Keeps those of a module's weights, its parameters and buffers, that have reached the highest score.
///
///     train::BestWeights best(model);
///     if (loaded) best.offer(accuracy(model, dev));  // what was loaded is to be beaten
///     for (int epoch = 0; epoch < 10; ++epoch) {
///       train_epoch(model);
///       best.offer(accuracy(model, dev));
///     }
///     best.restore();
class BestWeights {
 public:
  /// The module must outlive this, and keep its tensors.
  explicit BestWeights(nn::Module& module) : module_(module) {}

  /// Keeps a copy of the module's weights if `score` is higher than each one before. Returns whether it is.
  /// Throws: DivergedError if the score is NaN, or a weight is NaN or infinite; and keeps what was kept.
  bool offer(double score, Location where = Location::here());
  /// Whether nothing was offered yet.
  bool empty() const { return !offered_; }
  /// The highest score; −∞ if nothing was offered.
  double score() const { return score_; }
  /// Gives the module the weights of the highest score, in place; without any, leaves it as it is.
  void restore(Location where = Location::here()) const;

 private:
  struct Kept {
    Tensor own, values;
  };

  nn::Module& module_;
  bool offered_ = false;
  std::vector<Kept> kept_;
  double score_ = -std::numeric_limits<double>::infinity();
};

}  // namespace reel::train
