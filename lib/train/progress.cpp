#include <reel/train/progress.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "../core/printable.h"
#include "progress_line.h"

namespace reel::nn::inline training {

namespace {

// Seconds of a clock that never goes back.
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Errors are ignored: a closed terminal or a full disk must not end the run; code that prints results finds the
// stream's error.
void show(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
  std::fflush(stdout);
}

// Whether stdout is a terminal that can move its cursor.
bool can_redraw() {
  if (!isatty(STDOUT_FILENO)) return false;
  const char* terminal = std::getenv("TERM");
  return terminal && *terminal && std::string_view(terminal) != "dumb";
}

// Read at each redraw, because the window may have been resized.
int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  int width = columns ? std::atoi(columns) : 0;
  return width > 0 ? width : 80;
}

}  // namespace

Progress::Progress(std::string label, std::int64_t total, std::string unit)
    : label_(detail::printable(label)),
      unit_(detail::printable(unit)),
      total_(total),
      terminal_(can_redraw()),
      start_(now()),
      shown_(start_) {}

double Progress::seconds() const { return now() - start_; }

void Progress::advance(std::int64_t count, double loss) {
  done_ += count;
  // A running mean, so that the displayed number is steady.
  loss_ = steps_++ == 0 ? loss : loss_ + std::max(0.02, 1.0 / static_cast<double>(steps_)) * (loss - loss_);
  double time = now();
  if (time - shown_ < (terminal_ ? 0.1 : 5)) return;
  shown_ = time;
  draw();
}

void Progress::clear() {
  if (terminal_ && drawn_) show("\r\x1b[K");
  drawn_ = false;
  std::fflush(stdout);
}

void Progress::draw() {
  ProgressState state{label_, unit_, total_, done_, loss_, seconds()};
  if (!terminal_) return show(progress_line(state) + "\n");
  // One column stays free: some terminals would wrap a full line.
  show(fmt::format("\r{}\x1b[K", progress_bar(state, std::max(terminal_width() - 1, 0))));
  drawn_ = true;
}

}  // namespace reel::nn::inline training
