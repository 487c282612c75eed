#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <reel/detail/immovable.h>
#include <reel/detail/saved_value.h>
#include <reel/error.h>
#include <reel/named_tensor.h>
#include <reel/random.h>

/// \file
/// Checkpoints of a whole training run, from which a later process resumes it. The function `reel::checkpoint` in
/// reel/checkpoint.h is another thing: recomputation of activations in the backward pass, which saves memory.

namespace reel::nn {
class Module;
}  // namespace reel::nn

namespace reel::optim {
class LossScaler;
class MovingAverage;
class Optimiser;
}  // namespace reel::optim

namespace reel::train {

/// An object whose state is a list of named tensors, such as a Scheduler, a Plateau, a BestWeights or a data Loader:
/// `state()` returns copies, or tensors that the object shares, and `load_state(state)` restores them, and changes
/// nothing if it throws.
template <class T>
concept Stateful = detail::HasState<T>;

/// An object that a Checkpoint saves, by reference, under a name: `{"model", model}`.
class CheckpointPart {
 public:
  /// A module: its parameters and buffers, by their names.
  CheckpointPart(std::string name, nn::Module& module);
  /// An optimiser: its state by the names of its parameters, which modules or tensors of the checkpoint must have.
  CheckpointPart(std::string name, optim::Optimiser& optimiser);
  /// A moving average: the averages by the names of its tensors, which modules or tensors of the checkpoint must have.
  CheckpointPart(std::string name, optim::MovingAverage& average);
  /// A loss scaler, between two steps.
  CheckpointPart(std::string name, optim::LossScaler& scaler);
  /// A generator: its seed and the number of its next call.
  CheckpointPart(std::string name, Generator& generator);
  /// A tensor, which may be undefined. A parameter is overwritten in place and keeps its shape and dtype; another
  /// handle is replaced by the saved tensor, on the device where the present one is.
  CheckpointPart(std::string name, Tensor& tensor);
  /// Any object with `state()` and `load_state(state)`.
  template <Stateful T>
    requires(!std::derived_from<T, optim::Optimiser> && !std::derived_from<T, nn::Module> &&
             !std::same_as<T, optim::MovingAverage>)
  CheckpointPart(std::string name, T& object) : CheckpointPart(std::move(name), &object, detail::saved_state(object)) {}
  /// A number, a bool, a std::string, or a std::vector of them.
  template <detail::SavedValue T>
  CheckpointPart(std::string name, T& value) : CheckpointPart(std::move(name), &value, detail::saved_value(value)) {}

  /// The name, as it was given.
  const std::string& name() const { return name_; }
  /// How the checkpoint reads and restores the object; for the library's own use.
  const std::shared_ptr<detail::CheckpointObject>& object() const { return object_; }

 private:
  CheckpointPart(std::string name, const void* address, detail::SavedState state);
  CheckpointPart(std::string name, const void* address, detail::SavedNumbers numbers);
  CheckpointPart(std::string name, const void* address, detail::SavedTexts texts);

  std::string name_;
  std::shared_ptr<detail::CheckpointObject> object_;
};

/// Options of Checkpoint.
struct CheckpointOptions {
  /// The number of snapshots that are kept beside that of the best score, at least 1; 0: all. Default 3.
  int keep_last = 3;
  /// The steps between two saves of `after_step`; 0 (default): it saves only before an end by a signal.
  std::int64_t every = 0;
  /// Whether a larger score is better; default true. False for a loss.
  bool larger_is_better = true;
  /// Whether `save` only copies the state, and a thread writes the copy. Default false.
  bool asynchronous = false;
  /// Whether the directory is only read, by `resume`, and may be that of a running program. Default false.
  bool read_only = false;
};

/// Options of `Checkpoint::save`.
struct SaveOptions {
  /// A measure of how good the model is, such as the accuracy on validation data; the snapshot of the best one is kept.
  /// NaN is refused. Default: none.
  std::optional<double> score = {};
  /// The number of the snapshot, at least 0. Default: that of the steps that `after_step` has counted, or, in a program
  /// that does not call it, of saves.
  std::optional<std::int64_t> step = {};
};

/// Options of `Checkpoint::resume`.
struct ResumeOptions {
  /// Whether tensors and parts that do not match are passed over, and listed in the result; else they are an error.
  /// Default false.
  bool partial = false;
  /// Whether the snapshot of the best score is restored, not the latest; nothing if none was saved with a score. Default
  /// false.
  bool best = false;
};

/// The result of `Checkpoint::resume`: true if a snapshot was restored.
struct Resumed {
  std::string file = {};                     ///< the path of the snapshot; empty if there was none
  std::int64_t step = 0;                     ///< its number
  std::optional<double> score = {};          ///< its score, if it was saved with one
  std::vector<std::string> missing = {};     ///< with `partial`: what the program has and the snapshot lacks
  std::vector<std::string> unexpected = {};  ///< with `partial`: what the snapshot has and the program lacks
  std::vector<std::string> different = {};   ///< with `partial`: what has another shape or dtype, or was refused

  /// True if a snapshot was restored.
  explicit operator bool() const { return !file.empty(); }
};

/// Saves a training run in a directory, so that a later process resumes it to the bit:
///
///     train::Checkpoint checkpoint("run", {{"model", model}, {"adam", adam}, {"schedule", schedule}}, {.every = 100});
///     checkpoint.resume();
///     while (checkpoint.steps() < 1000) {
///       train_step();
///       checkpoint.after_step();
///     }
///     checkpoint.save();
///
/// It holds references: the objects must outlive it. This thread's `default_generator()` is always saved, too. Everything
/// else that a step depends on is to be added: the generator or Loader that orders the data, counters, carried states.
///
/// Each save writes a snapshot, `step-000000100.safetensors`, which other programs can read: a parameter has the name
/// "model.hidden.weight", and Adam's state of it "adam.model.hidden.weight.mean". The file is on the disk, under its
/// name, before the text file `latest` names it, and older ones are removed after that: at no moment, also of a power
/// cut, is there no snapshot that can be loaded once the first save has returned. The text file `best` names that of
/// the best score. Checksums of all tensors are saved with them: a damaged file is never restored.
///
/// A directory belongs to one process at a time. Its path may lead through symbolic links; within it none is followed: a
/// save replaces a link that has the name of a file, and a snapshot that is one is not restored. Only one thread may use
/// it at a time.
class Checkpoint : public nn::FitCheckpoint, detail::Immovable {
 public:
  /// Opens a directory, which is created if it is missing, to save `parts`.
  /// Throws: io::FileError if it cannot be created or written, or if another Checkpoint has it open; Error for an option
  /// out of range, and for a part's name that occurs twice, is empty, reserved, or not of letters, digits, '_' and '-'.
  Checkpoint(std::string directory, std::initializer_list<CheckpointPart> parts, const CheckpointOptions& options = {},
             Location where = Location::here());
  /// Opens a directory, which is created if it is missing; parts are added later.
  /// Throws: io::FileError if it cannot be created or written, or if another Checkpoint has it open; Error for an option
  /// out of range.
  explicit Checkpoint(std::string directory, const CheckpointOptions& options = {}, Location where = Location::here());
  /// Waits until the last save is complete; an error of it that was not thrown is printed to stderr.
  ~Checkpoint();

  /// Adds an object to be saved, before the first `resume` or `save`.
  /// Throws: Error for a name that occurs twice, is empty, reserved, or not of letters, digits, '_' and '-', and after
  /// the first `resume` or `save`.
  template <class T>
  void add(std::string name, T& object, Location where = Location::here()) {
    add(CheckpointPart(std::move(name), object), where);
  }
  /// Adds a part, before the first `resume` or `save`.
  /// Throws: Error for a name that occurs twice, is empty, reserved, or not of letters, digits, '_' and '-', and after
  /// the first `resume` or `save`.
  void add(CheckpointPart part, Location where = Location::here());

  /// Restores the latest snapshot; false in an empty directory. If it is damaged, the newest one that can be loaded is
  /// restored instead, with a warning on stderr that names what is broken. The next save removes snapshots of later
  /// steps than that of its own, unless all are kept. After an exception nothing has changed.
  /// Throws: io::FileError if there are snapshots, but none can be loaded, and for one that a newer version of reel has
  /// saved; io::MisfitError, with a line for each, for parts or tensors that do not match, unless `partial`; what
  /// `load_state` of a part throws.
  Resumed resume(const ResumeOptions& options = {}, Location where = Location::here());

  /// Saves a snapshot and returns its path. If `asynchronous`, returns as soon as the state is copied; the snapshot is
  /// complete when the next `save` or `wait` returns. A save that fails leaves the earlier snapshots as they are.
  /// Throws: io::FileError, with the system's message, if the snapshot, or the one before it in the background, cannot
  /// be written; Error for a score that is NaN or a step below 0, for a parameter of an optimiser that no part has, in
  /// a directory with the snapshots of another run, from which this program has not resumed, and if `read_only`.
  std::string save(const SaveOptions& options = {}, Location where = Location::here());

  /// Counts a step of the training, and saves after each `every` steps; where an earlier save is still being written in
  /// the background, after the first later step at which that is done. If a signal has arrived since a living
  /// `Interruption` began, saves, says on stderr where, and throws.
  /// Throws: Interrupted after a signal; what `save` throws, for an earlier save in the background, too.
  void after_step(Location where = Location::here());
  /// The number of steps that `after_step` has counted, in all processes of the run.
  std::int64_t steps() const;

  /// Throws the error of a save in the background, if it has failed; does not wait. Throws: io::FileError.
  void check(Location where = Location::here());
  /// Waits until the last save is complete. Throws: io::FileError if it has failed.
  void wait(Location where = Location::here());

  /// The path of the directory.
  const std::string& directory() const;
  /// The path of the newest complete snapshot that this object has saved or restored; empty if there is none.
  std::string latest() const;
  /// The best score of the run; nothing if no snapshot was saved with a score.
  std::optional<double> best_score() const;

 private:
  friend struct detail::CheckpointForFit;
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace reel::train
