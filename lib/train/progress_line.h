#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reel::nn::inline training {

/// The data that a line of progress shows.
struct ProgressState {
  std::string_view label, unit;
  std::int64_t total;  ///< −1: unknown
  std::int64_t done;
  double loss;
  double seconds;  ///< since the start
};

/// The line without a bar: "epoch 1/3   25%  loss 0.5000  120 trees/s  1:02:03 left".
std::string progress_line(const ProgressState& state);

/// The line with a bar as wide as there is room, in at most `columns` columns of a terminal: what is too long is cut off.
std::string progress_bar(const ProgressState& state, int columns);

/// A duration of whole seconds: "0:07", "12:34", "1:02:03".
std::string duration_text(double seconds);

/// The number of columns that a text without control characters takes on a terminal.
int terminal_columns(std::string_view text);

}  // namespace reel::nn::inline training
