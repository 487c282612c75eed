#include "progress_line.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "../core/utf8.h"

namespace reel::nn::inline training {

namespace {

struct CodeRange {
  char32_t first, last;
};

bool is_in(char32_t code, const CodeRange* begin, const CodeRange* end) {
  return std::any_of(begin, end, [&](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

// The C library's wcwidth depends on the locale, which a program need not have set. Source: Unicode Standard Annex 11
// (wide characters) and the general category Mn (marks upon others), by blocks.
int columns_of(char32_t code) {
  static constexpr CodeRange marks[] = {{0x300, 0x36f},   {0x483, 0x487},   {0x591, 0x5bd},
                                        {0x610, 0x61a},   {0x64b, 0x65f},   {0x1ab0, 0x1aff},
                                        {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe20, 0xfe2f}};
  static constexpr CodeRange wide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
                                       {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                       {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1faff}, {0x20000, 0x3fffd}};
  if (is_in(code, std::begin(marks), std::end(marks))) return 0;
  return is_in(code, std::begin(wide), std::end(wide)) ? 2 : 1;
}

// The longest prefix of a text that takes at most this many columns.
std::string_view first_columns(std::string_view text, int columns) {
  std::size_t bytes = 0;
  for (int taken = 0; bytes < text.size();) {
    detail::Character character = detail::first_character(text.substr(bytes));
    taken += columns_of(character.code);
    if (taken > columns) break;
    bytes += character.bytes;
  }
  return text.substr(0, bytes);
}

// The share of the total that is done, in [0, 1].
double share_done(const ProgressState& state) {
  if (state.total <= 0) return 1;
  return std::min(static_cast<double>(state.done) / static_cast<double>(state.total), 1.0);
}

// Units a second, or, where that is less than one, a minute or an hour.
std::string speed_text(double speed, std::string_view unit) {
  if (speed >= 10 || speed <= 0) return fmt::format("{:.0f} {}/s", speed, unit);
  if (speed >= 1) return fmt::format("{:.1f} {}/s", speed, unit);
  if (speed >= 1.0 / 60) return fmt::format("{:.1f} {}/min", speed * 60, unit);
  return fmt::format("{:.1f} {}/h", speed * 3600, unit);
}

std::string numbers_text(const ProgressState& state) {
  double speed = static_cast<double>(state.done) / std::max(state.seconds, 1e-9);
  std::string text = fmt::format("loss {:.4f}  {}", state.loss, speed_text(speed, state.unit));
  if (state.total < 0) return fmt::format("{} {}  {}  {}", state.done, state.unit, text, duration_text(state.seconds));
  double rest = static_cast<double>(std::max<std::int64_t>(state.total - state.done, 0)) / std::max(speed, 1e-9);
  return fmt::format("{:3}%  {}  {} left", static_cast<int>(share_done(state) * 100), text, duration_text(rest));
}

}  // namespace

std::string duration_text(double seconds) {
  constexpr double longest = 3600 * 99999.0;
  auto whole = static_cast<std::int64_t>(seconds > 0 ? std::min(seconds, longest) : 0);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

int terminal_columns(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    detail::Character character = detail::first_character(text);
    columns += columns_of(character.code);
    text.remove_prefix(character.bytes);
  }
  return columns;
}

std::string progress_line(const ProgressState& state) { return fmt::format("{} {}", state.label, numbers_text(state)); }

std::string progress_bar(const ProgressState& state, int columns) {
  std::string text = numbers_text(state), line = fmt::format("{} ", state.label);
  int room = columns - terminal_columns(line) - terminal_columns(text) - 3;  // "[" and "] "
  if (room >= 8 && state.total >= 0) {
    auto filled = static_cast<int>(room * share_done(state));
    line += fmt::format("[{:#<{}}{:{}}] ", "", filled, "", room - filled);
  }
  return std::string(first_columns(line + text, columns));
}

}  // namespace reel::nn::inline training
