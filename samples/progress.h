#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace samples {

/// Shows how a run of known length gets on: loss, speed and time left. On a terminal it is a bar on one line that is
/// drawn anew; elsewhere a plain line every few seconds.
class Progress {
 public:
  /// `unit` is what is counted: "trees", "characters".
  Progress(std::string label, std::int64_t total, std::string unit)
      : label_(std::move(label)), unit_(std::move(unit)), total_(total), terminal_(isatty(STDOUT_FILENO)) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts what has been done since the last call, and its mean loss.
  void advance(std::int64_t count, double loss) {
    done_ += count;
    // A running mean, so that the number does not flicker.
    loss_ = steps_++ == 0 ? loss : loss_ + std::max(0.02, 1.0 / static_cast<double>(steps_)) * (loss - loss_);
    auto now = Clock::now();
    if (now - shown_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000))) return;
    shown_ = now;
    terminal_ ? draw_bar() : print_line();
  }

  /// The running mean of the loss.
  double loss() const { return loss_; }

  /// Seconds since the start.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Takes the bar off the terminal, so that an ordinary line can be printed.
  void clear() {
    if (terminal_ && drawn_) fmt::print("\r\x1b[K");
    drawn_ = false;
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string numbers() const {
    double speed = static_cast<double>(done_) / std::max(seconds(), 1e-9);
    auto left = static_cast<std::int64_t>(static_cast<double>(total_ - done_) / std::max(speed, 1e-9));
    return fmt::format("loss {:.4f}  {:.0f} {}/s  {}:{:02} left", loss_, speed, unit_, left / 60, left % 60);
  }

  int percent() const { return total_ > 0 ? static_cast<int>(100 * done_ / total_) : 100; }

  void print_line() const {
    fmt::print("{} {:3}%  {}\n", label_, percent(), numbers());
    std::fflush(stdout);
  }

  void draw_bar() {
    winsize size{};
    int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    std::string text = fmt::format("{:3}%  {}", percent(), numbers());
    // One column stays free: a full line would make some terminals wrap.
    int room = width - 1 - static_cast<int>(label_.size() + text.size()) - 5;
    std::string line = label_ + " ";
    if (room >= 8) {
      int filled = total_ > 0 ? static_cast<int>(room * done_ / total_) : room;
      line += "[" + std::string(static_cast<std::size_t>(filled), '#') +
              std::string(static_cast<std::size_t>(room - filled), ' ') + "] ";
    }
    line += text;
    fmt::print("\r{}\x1b[K", line.substr(0, static_cast<std::size_t>(width - 1)));
    std::fflush(stdout);
    drawn_ = true;
  }

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

}  // namespace samples
