#include "mouse.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <vector>

#include <fmt/format.h>

#include "state.h"

namespace reel::debug {

namespace {

constexpr std::size_t most_clickable = std::size_t{64} << 10;
constexpr int escape = 27;
constexpr int report_milliseconds = 50;  // within which the bytes of one report follow each other

// Clicks, with coordinates as decimal numbers. Source: xterm, "Control Sequences", Mouse Tracking.
constexpr std::string_view mouse_on = "\x1b[?1000h\x1b[?1006h";
constexpr std::string_view mouse_off = "\x1b[?1006l\x1b[?1000l";
constexpr std::string_view ask_for_cursor = "\x1b[6n";

void tell_terminal(std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A signal that ends the program must not leave the terminal with a mouse that reports. Handlers have no argument of
// ours, so what they need is known here while a line is read.
constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
std::array<struct sigaction, ending_signals.size()> actions_before;

void end_with_signal(int signal) {
  tell_terminal(mouse_off);
  for (std::size_t i = 0; i < ending_signals.size(); ++i)
    if (ending_signals[i] == signal) sigaction(signal, &actions_before[i], nullptr);
  raise(signal);
}

struct PlacedId {
  std::size_t place;  // in characters
  std::uint64_t id;
};

std::vector<PlacedId> ids_in(std::string_view line) {
  std::vector<PlacedId> ids;
  for (std::size_t at = line.find('%'); at != std::string_view::npos; at = line.find('%', at + 1)) {
    std::uint64_t id = 0;
    auto [end, fault] = std::from_chars(line.data() + at + 1, line.data() + line.size(), id);
    if (fault == std::errc()) ids.push_back({width_of(line.substr(0, at)), id});
  }
  return ids;
}

}  // namespace

std::optional<std::uint64_t> op_at(std::string_view printed, int columns, int rows_up, int column) {
  auto width = static_cast<std::size_t>(std::max(columns, 1));
  auto up = static_cast<std::size_t>(std::max(rows_up, 0));
  while (up > 0 && printed.ends_with('\n')) {
    printed.remove_suffix(1);
    std::string_view line = printed.substr(printed.rfind('\n') + 1);
    printed.remove_suffix(line.size());
    std::size_t rows = std::max<std::size_t>(1, (width_of(line) + width - 1) / width);
    if (up > rows) {
      up -= rows;
      continue;
    }
    std::size_t place = (rows - up) * width + static_cast<std::size_t>(std::max(column, 1)) - 1;
    std::vector<PlacedId> ids = ids_in(line);
    if (ids.empty()) return std::nullopt;
    auto behind = std::ranges::find_if(ids, [&](const PlacedId& one) { return one.place > place; });
    return behind == ids.begin() ? ids.front().id : std::prev(behind)->id;
  }
  return std::nullopt;
}

void Keys::add(std::string_view text) {
  printed_ += text;
  if (printed_.size() > most_clickable) printed_.erase(0, printed_.size() - most_clickable);
}

void Keys::begin_line() {
  typed_ = 0;
  asked_ = false;
  prompt_row_.reset();
  if (!has_mouse_) return;
  struct sigaction action = {};
  action.sa_handler = end_with_signal;
  for (std::size_t i = 0; i < ending_signals.size(); ++i) sigaction(ending_signals[i], &action, &actions_before[i]);
  std::fflush(stdout);
  tell_terminal(mouse_on);
}

void Keys::end_line() {
  if (!has_mouse_) return;
  tell_terminal(mouse_off);
  for (std::size_t i = 0; i < ending_signals.size(); ++i) sigaction(ending_signals[i], &actions_before[i], nullptr);
}

int Keys::next() {
  // Here the editor has printed the prompt.
  if (has_mouse_ && !asked_) {
    asked_ = true;
    tell_terminal(ask_for_cursor);
  }
  while (pending_.empty()) {
    int byte = next_byte(-1);
    if (byte != escape || !has_mouse_ || !take_report()) {
      ++typed_;
      return code_point(byte);
    }
  }
  int key = pending_.front();
  pending_.pop_front();
  return key;
}

// −1 at the end of the input, and if none comes in time.
int Keys::next_byte(int milliseconds) {
  if (!bytes_.empty()) {
    int byte = bytes_.front();
    bytes_.pop_front();
    return byte;
  }
  pollfd input{STDIN_FILENO, POLLIN, 0};
  unsigned char byte = 0;
  while (true) {
    int ready = poll(&input, 1, milliseconds);
    if (ready == 0) return -1;
    ssize_t count = ready > 0 ? read(STDIN_FILENO, &byte, 1) : -1;
    if (count == 1) return byte;
    if (count == 0 || errno != EINTR) return -1;
  }
}

// The editor takes characters, not bytes of UTF-8.
int Keys::code_point(int first) {
  int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  int point = more == 0 ? first : first & (0x3F >> more);
  for (; more > 0; --more) {
    int byte = next_byte(report_milliseconds);
    if (byte < 0) return first;
    point = point << 6 | (byte & 0x3F);
  }
  return point;
}

// Reads what follows an escape: a click, "[<0;COLUMN;ROWM", or where the cursor is, "[ROW;COLUMNR". Anything else is left
// to the editor.
bool Keys::take_report() {
  std::string read;
  auto more = [&] {
    int byte = next_byte(report_milliseconds);
    if (byte >= 0) read += static_cast<char>(byte);
    return byte >= 0 && read.size() < 32;
  };
  auto is_inner = [](char c) { return (c >= '0' && c <= '9') || c == ';' || c == '<'; };
  bool is_sequence = more() && read == "[";
  while (is_sequence && more() && is_inner(read.back())) {
  }
  int a = 0, b = 0, c = 0, end = 0;
  if (std::sscanf(read.c_str(), "[<%d;%d;%d%n", &a, &b, &c, &end) == 3 && end + 1 == static_cast<int>(read.size()) &&
      (read.back() == 'M' || read.back() == 'm')) {
    // Of the left button, when it is pressed; the wheel and releases come, too.
    if (a == 0 && read.back() == 'M') click(c, b);
    return true;
  }
  if (std::sscanf(read.c_str(), "[%d;%d%n", &a, &b, &end) == 2 && end + 1 == static_cast<int>(read.size()) &&
      read.back() == 'R') {
    prompt_row_ = a;
    return true;
  }
  for (char byte : read) bytes_.push_back(static_cast<unsigned char>(byte));
  return false;
}

void Keys::click(int row, int column) {
  if (!prompt_row_) return;
  std::optional<std::uint64_t> id = op_at(printed_, terminal_columns(), *prompt_row_ - row, column);
  if (!id) return;
  for (char c : typed_ == 0 ? fmt::format("ni %{}\n", *id) : fmt::format("%{} ", *id)) pending_.push_back(c);
}

}  // namespace reel::debug
