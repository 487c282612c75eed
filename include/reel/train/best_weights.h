#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include <reel/data/source.h>
#include <reel/error.h>
#include <reel/named_tensor.h>
#include <reel/nn/module.h>

namespace reel::train {

/// An error: a loss, a score or a weight of a training run is NaN or infinite.
class DivergedError : public Error {
  using Error::Error;
};

/// Checks that a loss is finite; called before the optimiser's step, it keeps the weights finite, too.
/// Throws: DivergedError if the loss is NaN or infinite.
void check_loss(double loss, Location where = Location::here());
/// Checks that the loss of a batch is finite: `train::check_loss(loss.item(), loader.sources())`.
/// Throws: DivergedError, which names the lines that the items of the batch were read from, if the loss is NaN or
/// infinite.
void check_loss(double loss, std::span<const data::Source> sources, Location where = Location::here());
/// Checks that the loss of a batch is finite: `train::check_loss(loss.item(), loader.sources())`.
/// Throws: DivergedError if the loss is NaN or infinite. It names the items whose rows of the batch's tensors hold NaN or
/// infinity, if there are any, else all.
void check_loss(double loss, const data::BatchSources& sources, Location where = Location::here());

/// Keeps a copy of a module's weights, its parameters and buffers, from when they reached the highest score.
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
  /// Keeps the best weights of `module`, which must outlive this object and keep its tensors.
  explicit BestWeights(nn::Module& module) : module_(module) {}

  /// Keeps a copy of the module's weights if `score` is higher than all before. Returns true if it is.
  /// Throws: DivergedError if the score is NaN, or a weight is NaN or infinite; the kept copy then stays.
  bool offer(double score, Location where = Location::here());
  /// True if no score was offered yet.
  bool empty() const { return !offered_; }
  /// The highest score; −∞ if none was offered.
  double score() const { return score_; }
  /// Copies the weights of the highest score back into the module, in place; if none was offered, leaves it as it is.
  void restore(Location where = Location::here()) const;

  /// The highest score and its weights: "score", no elements if none was offered, and "weights.hidden.bias" and the like
  /// by the names of the module's parameters and buffers.
  std::vector<NamedTensor> state() const;
  /// Restores what `state()` gave for a module of equal parameters and buffers. After an exception nothing has changed.
  /// Throws: Error for a name that is missing or unknown; ShapeError or DTypeError for a tensor that does not fit.
  void load_state(std::span<const NamedTensor> state, Location where = Location::here());

 private:
  struct Kept {
    std::string name;
    Tensor own, values;
  };

  nn::Module& module_;
  bool offered_ = false;
  std::vector<Kept> kept_;
  double score_ = -std::numeric_limits<double>::infinity();
};

}  // namespace reel::train
