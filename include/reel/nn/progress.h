#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reel::nn {

/// Shows on stdout how a run of known length gets on: loss, speed and time left. On a terminal it is a bar on one line
/// that is drawn anew; elsewhere a plain line every five seconds.
class Progress {
 public:
  /// `unit` is what is counted: "trees", "characters". Of a total that is not known, -1, no part is shown.
  Progress(std::string label, std::int64_t total, std::string unit);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts what has been done since the last call, and its mean loss.
  void advance(std::int64_t count, double loss);
  /// The running mean of the loss.
  double loss() const { return loss_; }
  /// Seconds since the start.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  /// Takes the bar off the terminal, so that an ordinary line can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string numbers() const;
  /// Of what is to be done, in thousandths; less than 0 if that is not known.
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
