#pragma once

#include <algorithm>
#include <cstdint>

#include <reel/dtype.h>

namespace reel::detail {

/// A matrix as oneDNN reads it: rows or columns without gaps, the other way far enough apart not to overlap.
template <class T>
struct PackedMatrix {
  const T* data;
  std::int64_t rows, columns, row_step, column_step;

  bool row_major() const { return (column_step == 1 || columns == 1) && (row_step >= columns || rows == 1); }
  bool column_major() const { return (row_step == 1 || rows == 1) && (column_step >= rows || columns == 1); }
  bool is_readable() const { return row_major() || column_major(); }
  /// The distance between rows, or columns; one row's may be anything, but oneDNN wants it to fit.
  std::int64_t step() const { return row_major() ? std::max(row_step, columns) : std::max(column_step, rows); }
};

/// Whether the processor multiplies bf16, and the matrices lie as it must be.
bool can_multiply(const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b);

// Rows of c lie `c_step` apart. Rows and columns may be worked out in any groups of at least 64: each element's bits are
// the same, but for multiply_sized.

/// c = or += a b in f32 on all of OpenMP's threads, which it waits for. The numbers of rows and columns must be large
/// (see matmul.cpp): of few, oneDNN would share out the sums, and each number of threads would give other bits.
void multiply_large(float* c, std::int64_t c_step, const PackedMatrix<float>& a, const PackedMatrix<float>& b,
                    bool adds);

/// c = a b, on the calling thread.
void multiply(float* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b);
/// c = a b with f32 sums, by a kernel that is made for these sizes when they are first met: at 512³ it takes 260 µs where
/// the one that serves all sizes takes 440, at 1024³ 3.2 ms against 5.5, but 1 to 1.5 ms go by until it is there (Xeon
/// with AMX, oneDNN 2.6.3). From a depth of 2048 on the order of its sums depends on the number of rows, so rows are always
/// taken `rows_of_sized` at a time: 2048³ takes 27.4 ms so and 27.7 at once, 36.6 with half as many. `threaded`: shared
/// out among threads.
inline constexpr std::int64_t rows_of_sized = 256;
void multiply_sized(BFloat16* c, std::int64_t c_step, const PackedMatrix<BFloat16>& a, const PackedMatrix<BFloat16>& b,
                    bool threaded);

}  // namespace reel::detail
