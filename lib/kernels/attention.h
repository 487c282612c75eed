#pragma once

#include "kernel_table.h"

namespace reel::detail {

/// The operands of attention, all contiguous and of one dtype, f32 or f64: queries (N, L, E), keys (N, S, E), values
/// (N, S, D).
struct Attended {
  const View& queries;
  const View& keys;
  const View& values;
  /// Added to the scores: (N, L, S) or (1, L, S); null for none.
  const View* mask;
  double scale;
  bool causal;
};

struct AttentionKernels {
  /// Computes y (N, L, D) and, for each query, the normalisers (N, L, 2): its largest score and 1 / Σ e^(score −
  /// largest); 0 and 0 if all keys are masked.
  void (*forward)(const View& y, const View& normalisers, const Attended& given);
  /// Computes the gradients of queries, keys and values from the contiguous gradient of y and the outputs of `forward`.
  void (*backward)(const View& by_queries, const View& by_keys, const View& by_values, const View& gradient,
                   const View& y, const View& normalisers, const Attended& given);
};

}  // namespace reel::detail
