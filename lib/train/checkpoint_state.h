#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reel/train/checkpoint.h>

#include "background_task.h"
#include "checkpoint_object.h"
#include "snapshot_folder.h"

namespace reel::detail {

/// An object that a checkpoint saves, and its name.
struct CheckpointEntry {
  std::string name;
  std::shared_ptr<CheckpointObject> object;
};

/// The tensors of a snapshot by the names of its parts.
using TensorsByPart = std::map<std::string, std::vector<NamedTensor>>;

/// Divides the tensors of a snapshot by their parts, whose names they lose.
TensorsByPart divided_by_part(std::vector<NamedTensor> tensors);

/// The state of objects as named tensors for a file, on the CPU; they may share elements with the objects.
std::vector<NamedTensor> collected(const std::vector<CheckpointEntry>& entries, Location where);

/// Replaces each tensor that shares elements with another one by a copy. `buffers`: the copies of the last call, which
/// are overwritten where they fit, and then those of this one.
void make_own(std::vector<NamedTensor>& tensors, std::vector<Tensor>& buffers, Location where);

/// Restores objects from the tensors of a snapshot; after an exception nothing has changed. Adds to `result` what does
/// not match. `optional_part`: one that the snapshot may lack.
/// Throws: io::MisfitError for what does not match unless `partial`; what objects throw.
void restore(const std::vector<CheckpointEntry>& entries, TensorsByPart saved, const std::string& optional_part,
             bool partial, train::Resumed& result, Location where);

}  // namespace reel::detail

namespace reel::train {

/// The members of a Checkpoint.
struct Checkpoint::State {
  State(std::string directory, const CheckpointOptions& options, Location where);
  ~State();

  /// All that is saved: the parts, this thread's generator, the counts, and the progress of `train::fit`.
  std::vector<detail::CheckpointEntry> entries();
  /// Throws: Error unless this program may save in the directory.
  void check_may_save(Location where) const;
  /// Takes note of a save that has ended, and throws its error.
  void finish_save();
  void wait();

  CheckpointOptions options;
  detail::SnapshotFolder folder;
  std::vector<CheckpointPart> parts;
  bool was_used = false;         ///< by `resume` or `save`
  bool has_others_runs = false;  ///< the directory has snapshots from which this program has not resumed
  std::int64_t steps = 0;
  bool is_due = false;        ///< a save of `after_step` that waits for the one before it
  bool counts_steps = false;  ///< by `after_step`; else saves are counted
  std::vector<double> best_score;
  std::optional<std::int64_t> latest;
  std::vector<Tensor> buffers;
  std::shared_ptr<detail::CheckpointObject> generator, counts;  ///< made by the first call of `entries`
  std::optional<detail::Snapshot> in_flight;
  std::shared_ptr<detail::CheckpointObject> fit;  ///< the progress of the `train::fit` that runs
  std::vector<NamedTensor> fit_state;             ///< that of one that has ended, or will begin
  detail::BackgroundTask task;                    ///< the last member: it uses the others
};

}  // namespace reel::train

namespace reel::detail {

/// The functions of a checkpoint that only `train::fit` calls.
struct CheckpointForFit {
  /// Adds an object under a name unless a part has it already.
  template <class T>
  static void add_if_missing(train::Checkpoint& checkpoint, const char* name, T& object, const void* address,
                             Location where) {
    for (const train::CheckpointPart& part : checkpoint.state_->parts)
      if (part.object()->address() == address) return;
    checkpoint.add(name, object, where);
  }
  /// Resumes unless the program has, restores the progress of a fit, if there is one, and saves it with each snapshot.
  static void begin(train::Checkpoint& checkpoint, std::shared_ptr<CheckpointObject> fit, Location where);
  /// Keeps the last progress, to be saved further on.
  static void end(train::Checkpoint& checkpoint, Location where) noexcept;
  /// Saves and throws Interrupted if a signal has arrived.
  static void end_if_interrupted(train::Checkpoint& checkpoint, bool is_saved, Location where);
  static bool larger_is_better(const train::Checkpoint& checkpoint) {
    return checkpoint.state_->options.larger_is_better;
  }
};

}  // namespace reel::detail
