#pragma once

#include "kernel_table.h"

namespace reel::detail {

enum class BagSum : std::int64_t { sum, mean, max };

/// The contents of bags: contiguous i64 indices (n), and the offsets (B + 1): the start of each bag, then n.
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
  /// Computes bags (B, D) of the rows of a contiguous table (V, D). For a maximum, `rows` (B, D), i64, gets the index
  /// of the row from which each element comes, −1 for an empty bag. Returns false, without writing anything, if an
  /// index or offset is out of range.
  bool (*bag)(const View& out, const View& rows, const View& table, const Bags& bags, BagSum mode, BagFault& fault);
};

}  // namespace reel::detail
