#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// A row from which no class can be drawn.
struct BadRow {
  std::int64_t row;
  /// True: a probability is invalid; false: too few classes have a probability above 0.
  bool is_probability;
  double probability;
  std::int64_t classes;
};

struct SamplingKernels {
  /// Draws classes (N, count) from rows of probabilities (N, C). Returns false, before anything is written, and sets
  /// `bad`, if a row is invalid. Both views are contiguous.
  bool (*multinomial)(const View& out, const View& probabilities, bool replacement, RandomCall call, BadRow& bad);
};

}  // namespace reel::detail
