#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <hwy/highway.h>

#include "../../../core/halves.h"
#include "../../../core/per_thread.h"
#include "../../../core/target.h"
#include "../vector/half_rows.h"
#include "../vector/vector.h"

// Products of matrices in f32 and f64, in blocks that stay in the caches and tiles that stay in registers. It is
// compiled once per instruction set. Each element is a sum over blocks of `depth_block` indices, in order, of sums in
// order: its bits depend neither on its position nor on which rows and columns are computed together, so that threads
// may divide a product in any way.

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

/// A view of a matrix with any strides.
template <class S>
struct Matrix {
  const S* data;
  std::int64_t rows, columns, row_stride, column_stride;

  const S* at(std::int64_t row, std::int64_t column) const { return data + row * row_stride + column * column_stride; }
  Matrix part(std::int64_t row, std::int64_t row_count, std::int64_t column, std::int64_t column_count) const {
    return {at(row, column), row_count, column_count, row_stride, column_stride};
  }
  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// Memory that is kept from one use to the next.
class Scratch {
 public:
  template <class T>
  T* get(std::int64_t count) {
    std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    if (bytes > bytes_) {
      memory_.reset();
      memory_.reset(std::aligned_alloc(64, bytes));
      bytes_ = memory_ ? bytes : 0;
      if (!memory_) throw std::bad_alloc();
    }
    return static_cast<T*>(memory_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

/// Memory that a thread keeps from one product to the next: `static constinit ThreadScratch scratch;`.
class ThreadScratch {
 public:
  /// Throws: std::bad_alloc.
  template <class T>
  T* get(std::int64_t count) {
    return scratch_.get().template get<T>(count);
  }

 private:
  PerThread<Scratch> scratch_;
};

inline constinit ThreadScratch packed_columns;

template <class T>
struct Gemm {
  using Tag = hn::ScalableTag<T>;
  using Lanes = hn::Vec<Tag>;
  using V = Vector<T>;
  static constexpr std::int64_t lanes = HWY_LANES(T);
  // 28 sums, two vectors of b and one of a use 31 of 32 registers; 12, two and one use 15 of 16.
  static constexpr int tile_rows = lanes * sizeof(T) == 64 ? 14 : 6;
  static constexpr std::int64_t tile_columns = 2 * lanes;
  // A block of b is a megabyte, in the second-level cache; a panel of a some ten kilobytes, in the first-level cache.
  static constexpr std::int64_t depth_block = 256;
  static constexpr std::int64_t column_block = 4096 / sizeof(T);

  /// c = or += a b for `rows` rows and `vectors` vectors of columns. `a` is packed: the elements of all rows are
  /// interleaved.
  template <int rows, int vectors>
  static void tile(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c,
                   std::int64_t c_stride, bool adds) {
    tile_beside<rows, vectors>(depth, a, a_stride, b, b_stride, c, c_stride, adds, [](std::int64_t) {});
  }

  /// c = or += a b for `rows` rows and `vectors` vectors of columns, with `a` packed; calls beside(k) at each index.
  template <int rows, int vectors, class Beside>
  static HWY_INLINE void tile_beside(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b,
                                     std::int64_t b_stride, T* c, std::int64_t c_stride, bool adds, Beside beside) {
    const Tag tag;
    // Unrolled, the sums are registers. Loops compile in a third of the time that functions for each index take.
    Lanes sums[rows][vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(tag);
    for (std::int64_t k = 0; k < depth; ++k) {
      beside(k);
      Lanes from_b[vectors];
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) from_b[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        Lanes from_a = hn::Set(tag, a[r]);
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(from_a, from_b[v], sums[r][v]);
      }
      a += a_stride;
      b += b_stride;
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        T* to = c + r * c_stride + v * lanes;
        hn::StoreU(adds ? hn::Add(hn::LoadU(tag, to), sums[r][v]) : sums[r][v], tag, to);
      }
  }

  using Tile = void (*)(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c,
                        std::int64_t c_stride, bool adds);
  using Tiles = std::array<std::array<Tile, tile_rows>, 2>;
  /// `tile` for `vectors` and `rows` is tiles[vectors - 1][rows - 1]. They are compiled once, in matmul.cpp.
  static const Tiles tiles;

  template <int... rows>
  static constexpr Tiles make_tiles(std::integer_sequence<int, rows...>) {
    return {{{tile<rows + 1, 1>...}, {tile<rows + 1, 2>...}}};
  }

  /// A tile of `rows` rows and `wide` columns, of which only `columns` exist.
  static void part_of_tile(Tile compute, std::int64_t rows, std::int64_t wide, std::int64_t columns, std::int64_t depth,
                           const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c,
                           std::int64_t c_stride, bool adds) {
    if (columns == wide) return compute(depth, a, a_stride, b, b_stride, c, c_stride, adds);
    T whole[tile_rows * tile_columns];
    compute(depth, a, a_stride, b, b_stride, whole, wide, false);
    auto each = [&](auto f) {
      for (std::int64_t j = 0; j < columns; j += lanes)
        for (std::int64_t r = 0; r < rows; ++r)
          f(whole + r * wide + j, c + r * c_stride + j, std::min(lanes, columns - j));
    };
    // If rows are close together all are read before any is written: a load would wait for the store before it.
    if (adds) each([](T* sum, const T* to, std::int64_t there) { (V::load(to, there) + V::load(sum)).store(sum); });
    each([](const T* sum, T* to, std::int64_t there) { V::load(sum).store(to, there); });
  }

  /// Where the columns of a block of b are, tile by tile.
  struct Columns {
    const T* in_place;  // null where all are packed
    std::int64_t in_place_step;
    const T* packed;
    std::int64_t count, depth;
  };

  static std::int64_t width(std::int64_t left, bool in_place) {
    if (left >= tile_columns) return tile_columns;
    return left > lanes && !in_place ? tile_columns : lanes;
  }

  static void row_of_tiles(std::int64_t rows, const T* a, std::int64_t a_stride, const Columns& b, T* c,
                           std::int64_t c_stride, bool adds) {
    const T* packed = b.packed;
    Tile narrow = tiles[0][static_cast<std::size_t>(rows - 1)], whole = tiles[1][static_cast<std::size_t>(rows - 1)];
    std::int64_t j = 0;
    // One row has too few sums to keep the processor busy, so four vectors are computed together.
    if (rows == 1 && b.in_place)
      for (; b.count - j >= 4 * lanes; j += 4 * lanes)
        tile<1, 4>(b.depth, a, a_stride, b.in_place + j, b.in_place_step, c + j, c_stride, adds);
    while (j < b.count) {
      std::int64_t left = b.count - j, wide = width(left, b.in_place), there = std::min(left, wide), step = wide;
      const T* from = packed;
      if (b.in_place && left >= wide) {
        from = b.in_place + j;
        step = b.in_place_step;
      } else {
        packed += b.depth * wide;
      }
      part_of_tile(wide == lanes ? narrow : whole, rows, wide, there, b.depth, a, a_stride, from, step, c + j, c_stride,
                   adds);
      j += there;
    }
  }

  /// Packs the columns of tiles side by side, with 0 in place of missing columns.
  template <class S>
  static void pack_columns(const Matrix<S>& b, T* to, bool only_rest) {
    std::int64_t j = 0;
    if constexpr (std::is_same_v<S, T>)
      if (!only_rest && b.column_stride == 1) j = pack_rows_of_tiles(b, to);
    to += j * b.rows;
    while (j < b.columns) {
      std::int64_t left = b.columns - j, wide = width(left, only_rest), there = std::min(left, wide);
      if (!only_rest || left < wide) {
        if (b.column_stride == 1 || b.row_stride != 1)
          for (std::int64_t k = 0; k < b.rows; ++k) pack_row(b.at(k, j), b.column_stride, there, to + k * wide, wide);
        else
          pack_transposed(b, j, there, wide, to);
        to += b.rows * wide;
      }
      j += there;
    }
  }

  template <class S>
  static HWY_INLINE void pack_row(const S* from, std::int64_t step, std::int64_t count, T* to, std::int64_t wide) {
    if constexpr (std::is_same_v<S, T>)
      if (step == 1) {
        for (std::int64_t i = 0; i < wide; i += lanes)
          V::load(from + i, std::clamp<std::int64_t>(count - i, 0, lanes)).store(to + i);
        return;
      }
    if constexpr (is_half_v<S>)
      widen_row(to, from, step, count);
    else
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
    std::fill(to + count, to + wide, T(0));
  }

  /// Packs four whole tiles at a time: longer pieces of a large matrix's rows are read faster. Returns the number of
  /// columns packed.
  static std::int64_t pack_rows_of_tiles(const Matrix<T>& b, T* to) {
    constexpr int together = 4;
    std::int64_t j = 0;
    for (; j + together * tile_columns <= b.columns; j += together * tile_columns)
      for (std::int64_t k = 0; k < b.rows; ++k) {
        const T* from = b.at(k, j);
        T* place = to + j * b.rows + k * tile_columns;
#pragma GCC unroll 4
        for (int t = 0; t < together; ++t)
          std::copy_n(from + t * tile_columns, tile_columns, place + t * b.rows * tile_columns);
      }
    return j;
  }

  /// Packs columns j, j + 1, … of a matrix whose columns are contiguous.
  static void pack_transposed(const Matrix<T>& b, std::int64_t j, std::int64_t there, std::int64_t wide, T* to) {
    constexpr std::int64_t side = square_lanes;
    // Columns that are this far apart evict each other from the first-level cache before their lines are used up.
    std::int64_t together = b.column_stride % static_cast<std::int64_t>(2048 / sizeof(T)) == 0 ? 64 / sizeof(T) : side;
    std::int64_t whole_rows = b.rows / side * side, whole_columns = there < side ? 0 : there;
    // The last columns of a tile may overlap those before.
    auto column = [&](std::int64_t i) { return std::min(i, there - side); };
    for (std::int64_t k = 0; together == side && k < whole_rows; k += side)
      for (std::int64_t i = 0; i < whole_columns; i += side)
        transpose_square(b.at(k, j + column(i)), b.column_stride, to + k * wide + column(i), wide);
    for (std::int64_t first = 0; together != side && first < whole_rows; first += together)
      for (std::int64_t i = 0; i < whole_columns; i += side)
        for (std::int64_t k = first; k < std::min(first + together, whole_rows); k += side)
          transpose_square(b.at(k, j + column(i)), b.column_stride, to + k * wide + column(i), wide);
    for (std::int64_t i = whole_rows == b.rows ? whole_columns : 0; i < there; ++i) {
      const T* from = b.at(0, j + i);
      for (std::int64_t k = i < whole_columns ? whole_rows : 0; k < b.rows; ++k) to[k * wide + i] = from[k];
    }
    if (there < wide)
      for (std::int64_t k = 0; k < b.rows; ++k) std::fill(to + k * wide + there, to + (k + 1) * wide, T(0));
  }

  template <class Half>
  static void pack_transposed(const Matrix<Half>& b, std::int64_t j, std::int64_t there, std::int64_t wide, T* to) {
    constexpr std::int64_t together = 64;
    T lines[tile_columns * together];
    for (std::int64_t k = 0; k < b.rows; k += together) {
      std::int64_t rows = std::min(together, b.rows - k);
      for (std::int64_t i = 0; i < there; ++i) widen_row(lines + i * rows, b.at(k, j + i), rows);
      pack_transposed(Matrix<T>{lines, rows, there, 1, rows}, 0, there, wide, to + k * wide);
    }
  }

#if HWY_TARGET == HWY_SCALAR
  static constexpr int square_lanes = 1;
  static void transpose_square(const T* from, std::int64_t, T* to, std::int64_t) { *to = *from; }
#else
  static constexpr int square_lanes = 16 / sizeof(T);
  static HWY_INLINE void transpose_square(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
    const hn::FixedTag<T, square_lanes> tag;
    auto a = hn::LoadU(tag, from), b = hn::LoadU(tag, from + from_stride);
    auto low = hn::InterleaveLower(tag, a, b), high = hn::InterleaveUpper(tag, a, b);
    if constexpr (square_lanes == 2) {
      hn::StoreU(low, tag, to);
      hn::StoreU(high, tag, to + to_stride);
    } else {
      auto c = hn::LoadU(tag, from + 2 * from_stride), d = hn::LoadU(tag, from + 3 * from_stride);
      auto next_low = hn::InterleaveLower(tag, c, d), next_high = hn::InterleaveUpper(tag, c, d);
      hn::StoreU(hn::ConcatLowerLower(tag, next_low, low), tag, to);
      hn::StoreU(hn::ConcatUpperUpper(tag, next_low, low), tag, to + to_stride);
      hn::StoreU(hn::ConcatLowerLower(tag, next_high, high), tag, to + 2 * to_stride);
      hn::StoreU(hn::ConcatUpperUpper(tag, next_high, high), tag, to + 3 * to_stride);
    }
  }
#endif

  /// packed[k rows + r] = a(r, k), for at most `tile_rows` rows and `depth_block` columns.
  template <class S>
  static void pack_rows(const Matrix<S>& a, T* packed) {
    if constexpr (std::is_same_v<S, T>) {
      if (a.column_stride == 1)
        pack_transposed(a.transposed(), 0, a.rows, a.rows, packed);
      else
        interleave<T>[static_cast<std::size_t>(a.rows - 1)](a, packed);
    } else {
      // Elements are widened where they are contiguous, by vectors.
      if (a.column_stride == 1 && a.columns >= lanes) {
        T wide[tile_rows * depth_block];
        for (std::int64_t r = 0; r < a.rows; ++r) widen_row(wide + r * a.columns, a.at(r, 0), a.columns);
        pack_transposed(Matrix<T>{wide, a.columns, a.rows, 1, a.columns}, 0, a.rows, a.rows, packed);
      } else {
        S narrow[tile_rows * depth_block];
        interleave<S>[static_cast<std::size_t>(a.rows - 1)](a, narrow);
        widen_row(packed, narrow, a.rows * a.columns);
      }
    }
  }

  /// packed[k rows + r] = a(r, k)
  template <class S, int rows>
  static void interleave_rows(const Matrix<S>& a, S* __restrict packed) {
    const S* from = a.data;
    const std::int64_t count = a.columns, row_stride = a.row_stride, column_stride = a.column_stride;
    if (row_stride == 1)
      for (std::int64_t k = 0; k < count; ++k, from += column_stride, packed += rows)
        std::memcpy(static_cast<void*>(packed), from, rows * sizeof(S));
    else
      for (std::int64_t k = 0; k < count; ++k, from += column_stride, packed += rows)
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) packed[r] = from[r * row_stride];
  }
  template <class S>
  using Interleave = void (*)(const Matrix<S>& a, S* packed);
  template <class S, int... rows>
  static constexpr std::array<Interleave<S>, tile_rows> make_interleave(std::integer_sequence<int, rows...>) {
    return {interleave_rows<S, rows + 1>...};
  }
  template <class S>
  static constexpr auto interleave = make_interleave<S>(std::make_integer_sequence<int, tile_rows>());

  template <class S>
  static void panel(const Matrix<S>& a, const Columns& b, T* c, std::int64_t c_stride, bool adds) {
    if constexpr (std::is_same_v<S, T>)
      if (a.rows == 1) return row_of_tiles(1, a.data, a.column_stride, b, c, c_stride, adds);
    alignas(64) T packed[tile_rows * depth_block];
    pack_rows(a, packed);
    row_of_tiles(a.rows, packed, a.rows, b, c, c_stride, adds);
  }

  /// Returns true if packing b does not pay: for few rows, or if b fits the first-level caches.
  template <class S>
  static bool multiplies_in_place(std::int64_t rows, const Matrix<S>& b) {
    return std::is_same_v<S, T> && b.column_stride == 1 &&
           (rows <= std::int64_t{4} * tile_rows || b.rows * b.columns <= (1 << 17) / static_cast<int>(sizeof(T)));
  }

  /// c = or += a b; `c_stride` is the leading dimension of c.
  template <class S>
  static void multiply(T* c, std::int64_t c_stride, const Matrix<S>& a, const Matrix<S>& b, bool adds = false) {
    bool in_place = multiplies_in_place(a.rows, b);
    for (std::int64_t k = 0; k < a.columns; k += depth_block)
      for (std::int64_t j = 0; j < b.columns; j += column_block) {
        std::int64_t depth = std::min(depth_block, a.columns - k), columns = std::min(column_block, b.columns - j);
        Matrix<S> block = b.part(k, depth, j, columns);
        T* packed = nullptr;
        if (!in_place || columns % lanes != 0) {
          packed = packed_columns.get<T>(
              depth * (in_place ? lanes : (columns + tile_columns - 1) / tile_columns * tile_columns));
          pack_columns(block, packed, in_place);
        }
        Columns where{nullptr, block.row_stride, packed, columns, depth};
        if constexpr (std::is_same_v<S, T>)
          if (in_place) where.in_place = block.data;
        Matrix<S> left = a.part(0, a.rows, k, depth);
        // Panels of about equal height.
        std::int64_t panels = (a.rows + tile_rows - 1) / tile_rows;
        for (std::int64_t panel = 0; panel < panels; ++panel) {
          std::int64_t begin = a.rows * panel / panels, end = a.rows * (panel + 1) / panels;
          Gemm::panel(left.part(begin, end - begin, 0, depth), where, c + begin * c_stride + j, c_stride,
                      adds || k > 0);
        }
      }
  }
};

extern template const Gemm<float>::Tiles Gemm<float>::tiles;
extern template const Gemm<double>::Tiles Gemm<double>::tiles;

}  // namespace reel::detail::inline REEL_TARGET
