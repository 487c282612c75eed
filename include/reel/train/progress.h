#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reel::nn {

/// Prints the progress of a run of known length to stdout: loss, speed and remaining time. On a terminal it is a bar on
/// one line that is redrawn; elsewhere a plain line every five seconds.
class Progress {
 public:
  /// Starts a run: `label` is its name, `total` the units to be done, −1 if unknown, and `unit` their name: "trees",
  /// "characters".
  Progress(std::string label, std::int64_t total, std::string unit);
  /// Removes the bar from the terminal.
  ~Progress() { clear(); }
  /// Not copyable.
  Progress(const Progress&) = delete;
  /// Not assignable.
  Progress& operator=(const Progress&) = delete;

  /// Adds the units done since the last call, and their mean loss.
  void advance(std::int64_t count, double loss);
  /// The running mean of the loss.
  double loss() const { return loss_; }
  /// Seconds since the start.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Removes the bar from the terminal, so that an ordinary line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string numbers() const;
  /// The share of the total that is done, in thousandths; negative if the total is unknown.
  std::int64_t share() const;
  void print_line() const;
  void draw_bar();

  std::string label_;
  std::string unit_;
  std::int64_t total_;
  bool terminal_;
  bool drawn_ = false;
  std::int64_t done_ = 0;
  std::int64_t steps_ = 0;
  double loss_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace reel::nn
