#pragma once

#include <cstdint>

#include <reel/dtype.h>

namespace reel::detail {

/// A matrix as oneDNN reads it: rows or columns without gaps, the other way far enough apart not to overlap.
struct Bf16Matrix {
  const BFloat16* data;
  std::int64_t rows, columns, row_step, column_step;

  bool row_major() const { return (column_step == 1 || columns == 1) && (row_step >= columns || rows == 1); }
  bool column_major() const { return (row_step == 1 || rows == 1) && (column_step >= rows || columns == 1); }
};

/// Whether the processor multiplies bf16, and the matrices lie as it must be.
bool can_multiply(const Bf16Matrix& a, const Bf16Matrix& b);

/// c = a b with f32 sums, on the calling thread; rows of c lie `c_step` apart. Rows and columns may be worked out in any
/// groups of at least 64: each element's bits are the same. Where `sized`, a kernel is made for these sizes when they are
/// first met: at 512³ it takes 270 µs where the one that serves all sizes takes 380, at 1024³ 3.6 ms against 4.5, but 1 to
/// 1.5 ms go by until it is there (Xeon with AMX, oneDNN 2.6.3).
void multiply(BFloat16* c, std::int64_t c_step, const Bf16Matrix& a, const Bf16Matrix& b, bool sized);

}  // namespace reel::detail
