#pragma once

#include <stdexcept>

namespace reel::train {

/// A signal has asked the program to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal);
  int signal() const { return signal_; }
  /// What shells say of a program that the signal has ended: 130 for SIGINT, 143 for SIGTERM.
  int exit_status() const { return 128 + signal_; }

 private:
  int signal_;
};

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the program at once, so that a training loop can save its weights
/// first:
///
///     train::Interruption interruption;
///     try {
///       for (const nn::Batch& batch : batches) {
///         train::check_interruption();
///         …
///       }
///     } catch (const train::Interrupted& interrupted) {
///       io::save(path, model);
///       return interrupted.exit_status();
///     }
///
/// A second SIGINT ends the program at once. Signals that are ignored, as those of `nohup` are, stay ignored. What was done
/// with the signals before is done again afterwards; a signal that no `check_interruption` has told of then arrives.
class Interruption {
 public:
  /// Throws: std::logic_error if another lives.
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
};

/// Throws: Interrupted if a signal has come since the living `Interruption` began. Costs a load; may be called by any
/// thread, and does nothing where there is no `Interruption`.
void check_interruption();

}  // namespace reel::train
