#pragma once

#include <cstdint>
#include <string>

#include <reel/detail/immovable.h>

namespace reel::nn::inline training {

/// Prints the progress of a run to stdout: loss, speed and remaining time, of a run of unknown length the time so far. On
/// a terminal it is a bar on one line, redrawn ten times a second at most and as wide as the window is then; in a pipe or
/// a file, and where the environment has TERM=dumb or no TERM, a plain line every five seconds. It has no colours.
class Progress : detail::Immovable {
 public:
  /// Starts a run: `label` is its name, `total` the units to be done, −1 if unknown, and `unit` their name: "trees",
  /// "characters".
  Progress(std::string label, std::int64_t total, std::string unit);
  /// Removes the bar from the terminal.
  ~Progress() { clear(); }

  /// Adds the units done since the last call, and their mean loss.
  void advance(std::int64_t count, double loss);
  /// The running mean of the loss.
  double loss() const { return loss_; }
  /// Seconds since the start.
  double seconds() const;
  /// Removes the bar from the terminal, so that an ordinary line can be printed.
  void clear();

 private:
  void draw();

  std::string label_;
  std::string unit_;
  std::int64_t total_;
  bool terminal_;
  bool drawn_ = false;
  std::int64_t done_ = 0;
  std::int64_t steps_ = 0;
  double loss_ = 0;
  double start_;  // of a clock that never goes back, in seconds
  double shown_;
};

}  // namespace reel::nn::inline training
