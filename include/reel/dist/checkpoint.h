#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include <reel/dist/group.h>
#include <reel/train/checkpoint.h>

namespace reel::dist {

/// The checkpoints of a run on several ranks: rank 0 saves, and all ranks resume from what it has saved, which may be on
/// another number of ranks. Its parts have to be equal on all ranks, as a model, an optimiser and a sharded Loader are:
///
///     dist::Checkpoint checkpoint(group, "run", {{"model", model}, {"adam", adam}, {"loader", loader}}, {.every = 100});
///     checkpoint.resume();
///     while (checkpoint.steps() < 1000) {
///       train_step();
///       checkpoint.after_step();
///     }
///     checkpoint.save();
class Checkpoint {
 public:
  /// Opens a directory that all ranks can read, which is created if it is missing.
  /// Throws: what train::Checkpoint's constructor throws.
  Checkpoint(Group group, const std::string& directory, std::initializer_list<train::CheckpointPart> parts,
             train::CheckpointOptions options = {}, Location where = Location::here());

  /// Restores the latest snapshot on all ranks; false in an empty directory. Collective.
  /// Throws: what `train::Checkpoint::resume` throws; Error if ranks have read different snapshots.
  train::Resumed resume(Location where = Location::here());
  /// Counts a step on all ranks, and saves on rank 0 after each `every` steps.
  /// Throws: train::Interrupted after a signal; on rank 0 what `train::Checkpoint::save` throws.
  void after_step(Location where = Location::here());
  /// Saves a snapshot on rank 0. Throws: what `train::Checkpoint::save` throws.
  void save(const train::SaveOptions& options = {}, Location where = Location::here());
  /// The number of steps that `after_step` has counted, in all processes of the run.
  std::int64_t steps() const { return steps_; }

 private:
  Group group_;
  std::unique_ptr<train::Checkpoint> checkpoint_;
  std::int64_t steps_ = 0;
};

}  // namespace reel::dist
