#include <reel/train/progress.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace reel::nn {

namespace {

// Errors are ignored: a closed terminal or a full disk must not end the run; code that prints results finds the
// stream's error.
void show(const std::string& text) { static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout)); }

}  // namespace

Progress::Progress(std::string label, std::int64_t total, std::string unit)
    : label_(std::move(label)), unit_(std::move(unit)), total_(total), terminal_(isatty(STDOUT_FILENO)) {}

void Progress::advance(std::int64_t count, double loss) {
  done_ += count;
  // A running mean, so that the displayed number is steady.
  loss_ = steps_++ == 0 ? loss : loss_ + std::max(0.02, 1.0 / static_cast<double>(steps_)) * (loss - loss_);
  auto now = Clock::now();
  if (now - shown_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000))) return;
  shown_ = now;
  terminal_ ? draw_bar() : print_line();
}

void Progress::clear() {
  if (terminal_ && drawn_) show("\r\x1b[K");
  drawn_ = false;
  std::fflush(stdout);
}

std::int64_t Progress::share() const {
  if (total_ < 0) return -1;
  return total_ == 0 ? 1000 : std::min<std::int64_t>(1000 * done_ / total_, 1000);
}

std::string Progress::numbers() const {
  double speed = static_cast<double>(done_) / std::max(seconds(), 1e-9);
  std::string text = fmt::format("loss {:.4f}  {:.0f} {}/s", loss_, speed, unit_);
  if (total_ < 0) return text;
  auto left =
      static_cast<std::int64_t>(static_cast<double>(std::max<std::int64_t>(total_ - done_, 0)) / std::max(speed, 1e-9));
  return fmt::format("{:3}%  {}  {}:{:02} left", share() / 10, text, left / 60, left % 60);
}

void Progress::print_line() const {
  show(fmt::format("{} {}\n", label_, numbers()));
  std::fflush(stdout);
}

void Progress::draw_bar() {
  winsize size{};
  int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  std::string text = numbers(), line = label_ + " ";
  // One column stays free: some terminals would wrap a full line.
  int room = width - 1 - static_cast<int>(label_.size() + text.size()) - 5;
  if (room >= 8 && total_ >= 0) {
    auto filled = static_cast<int>(room * share() / 1000);
    line += fmt::format("[{:#<{}}{:{}}] ", "", filled, "", room - filled);
  }
  line += text;
  show(fmt::format("\r{}\x1b[K", line.substr(0, static_cast<std::size_t>(width - 1))));
  std::fflush(stdout);
  drawn_ = true;
}

}  // namespace reel::nn
