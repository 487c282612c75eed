#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "bf16_product.h"
#include "gemm.h"
#include "instruction_set.h"
#include "parallel.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

/// Products of fewer multiplications stay on the calling thread.
constexpr std::int64_t parallel_multiplications = std::int64_t{1} << 22;

// Below this many multiplications oneDNN's call costs more than the product does here.
constexpr std::int64_t few_bf16_multiplications = 1 << 15;

// Beyond it, a row reads all of b for each element of its own.
constexpr std::int64_t rows_of_dots = 4;

enum class Way : std::uint8_t { blocks, dots, onednn, onednn_sized, plain };

Bf16Matrix as_bf16(const Matrix<BFloat16>& m) { return {m.data, m.rows, m.columns, m.row_step, m.column_step}; }

// How to multiply is chosen from the whole product, so that it does not depend on how threads share it.
template <class T>
Way way_of(const Matrix<T>& a, const Matrix<T>& b) {
  if constexpr (std::is_integral_v<T>) {
    return Way::plain;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    bool large = a.rows * a.columns * b.columns >= few_bf16_multiplications;
    if (!large || !can_multiply(as_bf16(a), as_bf16(b))) return Way::blocks;
    // The batches of a ragged data set all have different sizes, and seldom these.
    return a.rows % 64 == 0 ? Way::onednn_sized : Way::onednn;
  } else if constexpr (std::is_floating_point_v<T>) {
    return a.rows <= rows_of_dots && b.row_step == 1 && b.column_step != 1 ? Way::dots : Way::blocks;
  } else {
    return Way::blocks;
  }
}

// Integers wrap around, so they are added as if unsigned; bools are or-ed.
template <class T>
void multiply_integers(T* c, std::int64_t c_step, const Matrix<T>& a, const Matrix<T>& b) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    T* row = c + i * c_step;
    std::fill_n(row, b.columns, T(0));
    for (std::int64_t k = 0; k < a.columns; ++k) {
      const T factor = *a.at(i, k), *from = b.at(k, 0);
      for (std::int64_t j = 0; j < b.columns; ++j)
        if constexpr (std::is_same_v<T, bool>)
          row[j] |= factor & from[j * b.column_step];
        else
          row[j] =
              static_cast<T>(static_cast<std::uint64_t>(row[j]) +
                             static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(from[j * b.column_step]));
    }
  }
}

// The halves are multiplied with f32 sums, which are rounded once.
template <class T>
void multiply_halves(T* c, std::int64_t c_step, const Matrix<T>& a, const Matrix<T>& b) {
  // A block of sums is a megabyte.
  std::int64_t columns = std::min<std::int64_t>(b.columns, 1024), rows = std::min(a.rows, (1 << 18) / columns);
  static thread_local Scratch scratch;
  float* sums = scratch.get<float>(rows * columns);
  for (std::int64_t i = 0; i < a.rows; i += rows)
    for (std::int64_t j = 0; j < b.columns; j += columns) {
      Matrix<T> left = a.part(i, std::min(rows, a.rows - i), 0, a.columns);
      Matrix<T> right = b.part(0, b.rows, j, std::min(columns, b.columns - j));
      Gemm<float>::multiply(sums, right.columns, left, right);
      for (std::int64_t row = 0; row < left.rows; ++row) {
        T* to = c + (i + row) * c_step + j;
        const float* from = sums + row * right.columns;
        for (std::int64_t column = 0; column < right.columns; ++column) to[column] = narrowed<T>(from[column]);
      }
    }
}

template <class T>
void multiply_part(Way way, T* c, std::int64_t c_step, const Matrix<T>& a, const Matrix<T>& b) {
  if constexpr (std::is_integral_v<T>) {
    multiply_integers(c, c_step, a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    way == Way::dots ? Gemm<T>::multiply_by_dots(c, c_step, a, b) : Gemm<T>::multiply(c, c_step, a, b);
  } else {
    if constexpr (std::is_same_v<T, BFloat16>)
      if (way != Way::blocks) return multiply(c, c_step, as_bf16(a), as_bf16(b), way == Way::onednn_sized);
    multiply_halves(c, c_step, a, b);
  }
}

// Where the n-th matrix of a batch starts, the batch axes being those of `out`.
std::int64_t offset_of(const View& view, const View& out, std::int64_t n) {
  std::int64_t offset = 0;
  for (int axis = out.rank - 3, own = view.rank - 3; axis >= 0; --axis, --own) {
    std::int64_t index = n % out.dims[axis];
    n /= out.dims[axis];
    if (own >= 0 && view.dims[own] != 1) offset += index * view.strides[own];
  }
  return offset;
}

template <class T>
Matrix<T> matrix_of(const View& view) {
  int last = view.rank - 1;
  return {view.as<T>(), view.dims[last - 1], view.dims[last], view.strides[last - 1], view.strides[last]};
}

// What is shared out among threads: `pieces` of each matrix of the batch, groups of rows or of columns. None is narrower
// than 64, so that each bf16 element's bits are those of the whole product.
struct Pieces {
  std::int64_t count, length;

  Pieces(std::int64_t length, std::int64_t multiplications)
      : count(std::clamp(std::min(length / 64, multiplications / (parallel_multiplications / 4)), std::int64_t{1},
                         std::int64_t{64})),
        length(length) {}
  std::int64_t begin(std::int64_t piece) const { return piece == count ? length : length / 64 * piece / count * 64; }
};

template <class T>
void matmul_typed(const View& out, const View& a, const View& b) {
  if (out.numel == 0) return;
  Matrix<T> left = matrix_of<T>(a), right = matrix_of<T>(b);
  if (left.columns == 0) return static_cast<void>(std::fill_n(out.as<T>(), out.numel, T{}));
  // A column is a row of the transposed product.
  bool turned = right.columns == 1 && left.rows != 1;
  if (turned) {
    Matrix<T> row = right.transposed();
    right = left.transposed();
    left = row;
  }
  const View &left_view = turned ? b : a, &right_view = turned ? a : b;
  std::int64_t rows = left.rows, columns = right.columns, area = rows * columns;
  std::int64_t matrices = out.numel / area, multiplications;
  if (__builtin_mul_overflow(area, left.columns, &multiplications))
    multiplications = std::numeric_limits<std::int64_t>::max();
  Way way = way_of(left, right);
  Pieces pieces(std::max(rows, columns), multiplications);
  std::int64_t jobs = matrices * pieces.count;
  // Each thread gets at least a quarter of the least that is shared.
  double each = static_cast<double>(multiplications) / static_cast<double>(pieces.count);
  double grain = static_cast<double>(parallel_multiplications) / 4 / each;
  bool alone = static_cast<double>(multiplications) * static_cast<double>(matrices) < parallel_multiplications;
  auto work = [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      std::int64_t n = begin / pieces.count, first = begin % pieces.count;
      std::int64_t last = std::min(pieces.count, first + (end - begin));
      begin += last - first;
      std::int64_t from = pieces.begin(first), count = pieces.begin(last) - from;
      Matrix<T> x = left, y = right;
      x.data += offset_of(left_view, out, n);
      y.data += offset_of(right_view, out, n);
      T* c = out.as<T>() + n * area;
      if (rows > columns)
        multiply_part(way, c + from * columns, columns, x.part(from, count, 0, x.columns), y);
      else
        multiply_part(way, c + from, columns, x, y.part(0, y.rows, from, count));
    }
  };
  if (alone)
    work(0, jobs);
  else
    parallel_for(jobs, std::max<std::int64_t>(1, static_cast<std::int64_t>(grain)), work);
}

void matmul(const View& out, const View& a, const View& b) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) { matmul_typed<T>(out, a, b); });
}

}  // namespace

void fill_matmul(KernelTable& table) { table.matmul = matmul; }

}  // namespace REEL_TARGET
}  // namespace reel::detail
