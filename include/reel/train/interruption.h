#pragma once

#include <stdexcept>

#include <reel/cancellation.h>
#include <reel/detail/immovable.h>

namespace reel::train {

/// An exception: a signal has asked the program to end.
class Interrupted : public std::runtime_error, public Cancellation {
 public:
  /// An exception for the given signal, such as SIGINT.
  explicit Interrupted(int signal);
  /// The number of the signal.
  int signal() const { return signal_; }
  /// The exit status that shells report for a program ended by the signal: 128 plus its number, 130 for SIGINT, 143 for
  /// SIGTERM.
  int exit_status() const { return 128 + signal_; }

 private:
  int signal_;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the program at once, so that a training loop can save its
/// weights first:
///
///     train::Interruption interruption;
///     try {
///       for (const train::Batch& batch : batches) {
///         train::check_interruption();
///         train_step(batch);
///       }
///     } catch (const train::Interrupted& interrupted) {
///       io::save(path, model);
///       return interrupted.exit_status();
///     }
///
/// A second signal, SIGINT or SIGTERM, ends the program at once. Signals that are ignored, as those of `nohup` are, stay
/// ignored. The end of the object restores the earlier handlers; a signal that no `check_interruption` has reported is
/// then delivered.
class Interruption : detail::Immovable {
 public:
  /// Starts to intercept the signals. Throws: std::logic_error if another Interruption lives.
  Interruption();
  /// Restores the earlier handlers.
  ~Interruption();
};

/// Checks whether a signal has arrived since the living `Interruption` began. Costs one load; may be called by any
/// thread, and does nothing without an `Interruption`.
/// Throws: Interrupted if one has.
void check_interruption();

}  // namespace reel::train
