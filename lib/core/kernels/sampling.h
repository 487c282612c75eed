#pragma once

#include "../kernel_table.h"

namespace reel::detail {

/// A row from which nothing can be drawn.
struct BadRow {
  std::int64_t row;
  /// A probability that is none; else how many classes are above 0.
  bool is_probability;
  double probability;
  std::int64_t classes;
};

struct SamplingKernels {
  /// Classes (N, count) of rows of probabilities (N, C). False, with `bad`, before anything is written, if a row does not
  /// serve. Both are contiguous.
  bool (*multinomial)(const View& out, const View& probabilities, bool replacement, RandomCall call, BadRow& bad);
};

}  // namespace reel::detail
