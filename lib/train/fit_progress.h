#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <reel/optim/loss_scaler.h>
#include <reel/train/fit.h>

#include "checkpoint_object.h"

namespace reel::nn::inline training {

/// A copy of a module's weights, to be restored.
class FitWeights {
 public:
  explicit FitWeights(const Module& module) : module_(module) {}
  void keep();
  void restore(Location where) const;
  /// The copies under the module's names; none before `keep`.
  const std::vector<NamedTensor>& kept() const { return kept_; }
  /// Replaces the copies by such of an equal module. Throws: Error, ShapeError or DTypeError for others.
  void take(std::vector<NamedTensor> kept, Location where);

 private:
  const Module& module_;
  std::vector<NamedTensor> kept_;
};

/// How far a fit is: what it saves with a checkpoint.
class FitProgress : public detail::CheckpointObject {
 public:
  FitProgress(const Module& module, const Data& training, const FitOptions& options);

  const void* address() const override { return this; }
  std::vector<NamedTensor> state(Location where) const override;
  void load(std::span<const NamedTensor> state, Location where) override;

  /// The next epoch begins.
  void finish_epoch();
  /// The last epoch whose loss was less than that of an earlier improvement, by the options' least improvement.
  int last_improvement() const;
  /// The loss of an epoch by which it is compared, of validation if there is any; ∞ for NaN.
  double loss_of(const EpochReport& one) const;

  std::int64_t epoch = 1;    ///< the present epoch, from 1
  std::int64_t steps = 0;    ///< of the optimiser, in all epochs
  std::int64_t batches = 0;  ///< those of the present epoch that are done
  Generator order;           ///< the generator of the epoch's order, as it was before it
  double seconds = 0;        ///< those of the present epoch
  std::vector<double> sums;  ///< over the epoch's examples: their number, the loss, the metrics
  FitReport report;
  double least = std::numeric_limits<double>::infinity();  ///< the least loss of an epoch
  FitWeights best;
  std::optional<optim::LossScaler> scaler;

 private:
  std::size_t metrics() const { return options_.metrics.size(); }
  Tensor reports() const;
  std::vector<EpochReport> reports_of(const Tensor& rows) const;

  const Data& training_;
  const FitOptions& options_;
};

}  // namespace reel::nn::inline training
