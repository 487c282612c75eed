#pragma once

#include "../kernel_table.h"

namespace reel::detail {

enum class BagSum : std::int64_t { sum, mean, max };

/// What bags hold: contiguous i64 indices (n), and where each bag starts, then n (B + 1).
struct Bags {
  const View& indices;
  const View& starts;
  /// A factor for each index, of the table's dtype and contiguous; null for none.
  const View* weights;
};

/// An index or a start that is out of range.
struct BagFault {
  bool is_start;
  std::int64_t value;
};

struct EmbeddingKernels {
  /// (B, D) of the rows of a contiguous table (V, D). `rows` (B, D), of i64, gets for a maximum the number of the row it
  /// comes from, −1 for an empty bag. Returns false, having written nothing, where something is out of range.
  bool (*bag)(const View& out, const View& rows, const View& table, const Bags& bags, BagSum mode, BagFault& fault);
};

}  // namespace reel::detail
