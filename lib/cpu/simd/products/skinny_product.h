#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "../../cached_space.h"
#include "../vector/fetch.h"
#include "../vector/half_rows.h"
#include "../vector/vector.h"
#include "gemm.h"

// Products of few rows, which read b once in place: row by row, or column by column if columns are contiguous. It is
// compiled once per instruction set. An element's bits depend neither on its position nor on which rows and columns are
// computed together. b may be of halves, which are widened in registers; if it is padded, the elements behind its
// rows, up to a whole vector, are zeros.

namespace reel::detail::inline REEL_TARGET {

template <class T, class B = T, bool padded = is_half_v<B>>
class SkinnyProduct {
  using V = Vector<T>;
  using Raw = typename V::Raw;
  using Product = Gemm<T>;
  static constexpr int lanes = static_cast<int>(V::lanes);
  static constexpr int registers = lanes * sizeof(T) == 64 ? 32 : 16;

 public:
  /// The largest number of rows for `multiply`.
  static constexpr int most_rows = 4;

  /// c = or += a b, for at most `most_rows` rows and contiguous rows of b; `c_stride` is the leading dimension of c.
  static void multiply(T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
    for (std::int64_t k = 0; k < a.columns; k += Product::depth_block) {
      std::int64_t depth = std::min(Product::depth_block, a.columns - k);
      by_strips[a.rows - 1](a.part(0, a.rows, k, depth), b.part(k, depth, 0, b.columns), c, c_stride, adds || k > 0);
    }
  }

  /// c = or += a b, as one sum in order for each element.
  static void multiply_block(T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
    by_strips[a.rows - 1](a, b, c, c_stride, adds);
  }

  /// Returns true if all products of this depth and number of columns are those of multiply_by_dots, whatever their number of
  /// rows: tiles and strips would compute with zeros above all, or have too few sums to keep the processor busy.
  static bool is_narrow(std::int64_t depth, std::int64_t columns) {
    return columns <= std::min(2 * lanes, 32) && depth >= std::max<std::int64_t>(16, 4 * columns);
  }

  /// c = or += a b, for any number of rows; few are multiplied one by one where rows of b are contiguous, else columns of b
  /// that are not are copied. `c_stride` is the leading dimension of c.
  static void multiply_by_dots(T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
    if (b.row_stride != 1) {
      if (b.column_stride == 1 && a.rows <= most_single_rows) return multiply_single_rows(c, c_stride, a, b, adds);
      // A few at a time, so that they stay in the caches.
      std::int64_t step = (b.rows + lanes - 1) / lanes * lanes, together = std::max<std::int64_t>((1 << 16) / step, 8);
      CachedSpace<B> columns(step * std::min(together, b.columns));
      for (std::int64_t j = 0; j < b.columns; j += together) {
        Matrix<B> some = b.part(0, b.rows, j, std::min(together, b.columns - j));
        for (std::int64_t i = 0; i < some.columns; ++i) {
          B* to = columns.get() + i * step;
          for (std::int64_t k = 0; k < b.rows; ++k) to[k] = *some.at(k, i);
          std::fill(to + b.rows, to + step, B());
        }
        multiply_by_dots(c + j, c_stride, a, {columns.get(), b.rows, some.columns, 1, step}, adds);
      }
      return;
    }
    std::int64_t groups = (a.rows + rows_together - 1) / rows_together;
    for (std::int64_t group = 0; group < groups; ++group) {
      std::int64_t row = a.rows * group / groups, rows = a.rows * (group + 1) / groups - row;
      for (std::int64_t begin = 0; begin < a.columns; begin += longest) {
        Matrix<T> left = a.part(row, rows, begin, std::min(longest, a.columns - begin));
        if (left.column_stride != 1) left = packed(left);
        by_dots[rows - 1](left, b.part(begin, left.columns, 0, b.columns), c + row * c_stride, c_stride,
                          adds || begin > 0);
      }
    }
  }

 private:
  using Kernel = void (*)(const Matrix<T>& a, const Matrix<B>& b, T* c, std::int64_t c_stride, bool adds);
  template <int count, template <int> class Which>
  static constexpr auto table() {
    return []<int... rows>(std::integer_sequence<int, rows...>) {
      return std::array<Kernel, count>{Which<rows + 1>::run...};
    }(std::make_integer_sequence<int, count>());
  }

  static HWY_INLINE V load(const T* from) { return V::load(from); }
  static HWY_INLINE V load(const T* from, std::int64_t count) { return V::load(from, count); }
  template <class Half>
    requires is_half_v<Half>
  static HWY_INLINE V load(const Half* from, std::int64_t count = lanes) {
    return padded ? load_widened(from) : load_widened(from, count);
  }

  // The pieces of the rows of halves in a strip are so short that the processor prefetches few of them by itself: see
  // "Skinny products" in tools/benchmark/README.md.
  static constexpr std::int64_t rows_ahead = 8;

  /// A strip of vectors of columns, of which the last may be partial.
  template <int rows, int vectors>
  static void strip(const Matrix<T>& a, const Matrix<B>& b, T* c, std::int64_t c_stride, bool adds) {
    const std::int64_t last = b.columns - (vectors - 1) * lanes;
    Raw sums[rows][vectors];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) sums[r][v] = V(0).raw;
    const T* from_a = a.data;
    const B* from_b = b.data;
    for (std::int64_t k = 0; k < b.rows; ++k) {
      if constexpr (is_half_v<B>) fetch(from_b + rows_ahead * b.row_stride, vectors * lanes);
      Raw factors[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) factors[r] = V::repeat(from_a[r * a.row_stride]).raw;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        V x = v < vectors - 1 ? load(from_b + v * lanes) : load(from_b + v * lanes, last);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) sums[r][v] = hn::MulAdd(factors[r], x.raw, sums[r][v]);
      }
      from_a += a.column_stride;
      from_b += b.row_stride;
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        V sum = sums[r][v];
        T* to = c + r * c_stride + v * lanes;
        if (v < vectors - 1)
          (adds ? V::load(to) + sum : sum).store(to);
        else
          (adds ? V::load(to, last) + sum : sum).store(to, last);
      }
  }

  /// Strips of as many vectors as registers allow, then strips of the remainder.
  template <int rows>
  struct Strips {
    static constexpr int most = std::min(8, (registers - 1 - rows) / rows);
    static constexpr std::int64_t widest = std::int64_t{most} * lanes;
    static void run(const Matrix<T>& a, const Matrix<B>& b, T* c, std::int64_t c_stride, bool adds) {
      for (std::int64_t j = 0; j < b.columns; j += widest) {
        std::int64_t columns = std::min(b.columns - j, widest);
        kernels[(columns - 1) / lanes](a, b.part(0, b.rows, j, columns), c + j, c_stride, adds);
      }
    }

   private:
    template <int vectors>
    struct OfVectors {
      static constexpr auto run = strip<rows, vectors>;
    };
    static constexpr auto kernels = table<most, OfVectors>();
  };
  static constexpr auto by_strips = table<most_rows, Strips>();

  static constexpr int rows_together = registers == 32 ? 4 : 2;

  static Matrix<T> packed(const Matrix<T>& a) {
    T* to = packed_columns.get<T>(a.rows * a.columns);
    for (std::int64_t r = 0; r < a.rows; ++r)
      for (std::int64_t k = 0; k < a.columns; ++k) to[r * a.columns + k] = *a.at(r, k);
    return {to, a.rows, a.columns, a.columns, 1};
  }

  /// Several columns together, so that there are enough independent sums, and all are reduced at once.
  template <int rows>
  struct Dots {
    static void run(const Matrix<T>& a, const Matrix<B>& b, T* c, std::int64_t c_stride, bool adds) {
      constexpr int together = rows == 1 ? 8 : 4;
      std::int64_t j = 0;
      for (; j + together <= b.columns; j += together)
        dots<rows, together>(a, b.at(0, j), b.column_stride, c + j, c_stride, adds);
      for (; j < b.columns; ++j) dots<rows, 1>(a, b.at(0, j), b.column_stride, c + j, c_stride, adds);
    }
  };
  static constexpr auto by_dots = table<rows_together, Dots>();

  // The packed rows stay in the second-level cache, and a thread keeps no more memory than that.
  static constexpr std::int64_t longest = 1 << 14;
  // Pieces of this length of longer columns are summed by themselves, and their sums are added in f64. Pieces of one column are
  // independent sums.
  static constexpr std::int64_t piece = 1024;

  // Up to this many rows copies of columns do not pay.
  static constexpr std::int64_t most_single_rows = 8;

  /// The products of rows one by one, in the order of `dots`.
  static void multiply_single_rows(T* c, std::int64_t c_stride, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
    for (std::int64_t begin = 0; begin < a.columns; begin += longest)
      for (std::int64_t row = 0; row < a.rows; ++row)
        for (std::int64_t j = 0; j < b.columns; j += lanes) {
          std::int64_t depth = std::min(longest, a.columns - begin),
                       columns = std::min<std::int64_t>(lanes, b.columns - j);
          multiply_single_row(c + row * c_stride + j, a.part(row, 1, begin, depth), b.part(begin, depth, j, columns),
                              adds || begin > 0);
        }
  }
  static void multiply_single_row(T* c, const Matrix<T>& a, const Matrix<B>& b, bool adds) {
    double totals[lanes] = {};
    T parts[lanes] = {};
    for (std::int64_t k = 0; k < a.columns; k += piece) {
      std::int64_t depth = std::min(piece, a.columns - k);
      add_lane_sums(a.at(0, k), a.column_stride, b.part(k, depth, 0, b.columns), parts);
      if (a.columns <= piece) break;
      for (std::int64_t i = 0; i < b.columns; ++i) totals[i] += static_cast<double>(parts[i]);
    }
    for (std::int64_t i = 0; i < b.columns; ++i) {
      T sum = a.columns <= piece ? parts[i] : static_cast<T>(totals[i]);
      c[i] = adds ? c[i] + sum : sum;
    }
  }

  // Instruction sets of wider vectors than 16 bytes do not access what a mask excludes.
  static constexpr bool is_wide = sizeof(Raw) > 16;

  // The narrowest vectors that hold all columns: loads then cross fewer cache lines.
  static HWY_INLINE void add_lane_sums(const T* a, std::int64_t a_stride, const Matrix<B>& b, T* sums) {
    if constexpr (std::is_same_v<T, B> && is_wide)
      if (b.columns <= lanes / 4) return add_lane_sums(hn::CappedTag<T, lanes / 4>(), a, a_stride, b, sums);
    if constexpr (std::is_same_v<T, B> && is_wide)
      if (b.columns <= lanes / 2) return add_lane_sums(hn::CappedTag<T, lanes / 2>(), a, a_stride, b, sums);
    add_lane_sums(typename V::Tag(), a, a_stride, b, sums);
  }
  // A vector of columns has a sum for each lane that a vector along a column would have.
  template <class Tag>
  static void add_lane_sums(Tag tag, const T* a, std::int64_t a_stride, const Matrix<B>& b, T* to) {
    using Lanes = hn::Vec<Tag>;
    auto there = hn::FirstN(tag, static_cast<std::size_t>(b.columns));
    const B* from = b.data;
    auto next = [&] {
      const B* row = from;
      from += b.row_stride;
      if constexpr (is_half_v<B>) {
        fetch(row + rows_ahead * b.row_stride, lanes);
        return load(row, b.columns).raw;
      } else if constexpr (is_wide) {
        return hn::MaskedLoad(there, tag, row);
      } else {
        return load(row, b.columns).raw;
      }
    };
    Lanes sums[lanes];
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) sums[l] = hn::Zero(tag);
    // Constant indices, also of the last terms, keep the sums in registers.
    std::int64_t k = 0;
    for (; k + lanes <= b.rows; k += lanes) {
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l, a += a_stride) sums[l] = hn::MulAdd(hn::Set(tag, *a), next(), sums[l]);
    }
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l)
      if (k + l < b.rows) sums[l] = hn::MulAdd(hn::Set(tag, a[l * a_stride]), next(), sums[l]);
    // Lanes are added as by added_up and sum_of_blocks.
    constexpr int side = Product::square_lanes;
#pragma GCC unroll 8
    for (int block = 0; block < lanes; block += side) {
      Lanes sum = sums[block];
      if constexpr (side == 2) sum = hn::Add(sum, sums[block + 1]);
      if constexpr (side == 4) sum = hn::Add(hn::Add(sum, sums[block + 2]), hn::Add(sums[block + 1], sums[block + 3]));
      sums[block / side] = sum;
    }
#pragma GCC unroll 4
    for (int half = lanes / side / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int block = 0; block < half; ++block) sums[block] = hn::Add(sums[block], sums[block + half]);
    hn::StoreU(sums[0], tag, to);
  }

  template <int rows, int columns>
  static HWY_INLINE void dots(const Matrix<T>& a, const B* b, std::int64_t b_stride, T* c, std::int64_t c_stride,
                              bool adds) {
    if (a.columns <= piece)
      return add_products<rows, columns, 1>(
          a, b, b_stride, a.columns, [=](int r, const Raw* sums) { add_sums<columns>(sums, c + r * c_stride, adds); });
    double totals[rows][columns] = {};
    auto add = [&](int r, const Raw* sums) {
      T parts[columns];
      add_sums<columns>(sums, parts, false);
      for (int j = 0; j < columns; ++j) totals[r][j] += static_cast<double>(parts[j]);
    };
    constexpr int together = rows * columns == 1 ? 4 : 1;
    std::int64_t k = 0;
    for (; k + together * piece <= a.columns; k += together * piece)
      add_products<rows, columns, together>(a.part(0, rows, k, piece), b + k, b_stride, piece, add);
    for (; k < a.columns; k += piece)
      add_products<rows, columns, 1>(a.part(0, rows, k, piece), b + k, b_stride, std::min(piece, a.columns - k), add);
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < columns; ++j) {
        T& to = c[r * c_stride + j];
        to = adds ? to + static_cast<T>(totals[r][j]) : static_cast<T>(totals[r][j]);
      }
  }

  /// Calls take(r, sums) with the vectors of sums of each row, for each of several adjacent pieces in order.
  template <int rows, int columns, int pieces, class Take>
  static HWY_INLINE void add_products(const Matrix<T>& a, const B* b, std::int64_t b_stride, std::int64_t count,
                                      const Take& take) {
    Raw sums[pieces][rows][columns];
#pragma GCC unroll 4
    for (int p = 0; p < pieces; ++p)
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) sums[p][r][j] = V(0).raw;
    auto add_up = [&](auto load_all) {
#pragma GCC unroll 4
      for (int p = 0; p < pieces; ++p) {
        Raw factors[columns];
#pragma GCC unroll 8
        for (int j = 0; j < columns; ++j) factors[j] = load_all(b + p * piece + j * b_stride).raw;
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          Raw x = load_all(a.data + p * piece + r * a.row_stride).raw;
#pragma GCC unroll 8
          for (int j = 0; j < columns; ++j) sums[p][r][j] = hn::MulAdd(x, factors[j], sums[p][r][j]);
        }
      }
    };
    std::int64_t k = 0;
    for (; k + lanes <= count; k += lanes) add_up([k](auto* from) { return load(from + k); });
    if (k < count) add_up([k, left = count - k](auto* from) { return load(from + k, left); });
#pragma GCC unroll 4
    for (int p = 0; p < pieces; ++p)
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) take(r, sums[p][r]);
  }

  /// c_j = or += the sum of the lanes of v_j, in an order that does not depend on the number of columns.
  template <int columns>
  static HWY_INLINE void add_sums(const Raw* v, T* c, bool adds) {
    constexpr int side = Product::square_lanes;
    if constexpr (columns == 1) {
      Raw some[side];
#pragma GCC unroll 4
      for (int j = 0; j < side; ++j) some[j] = j == 0 ? v[0] : V(0).raw;
      T sum = hn::GetLane(sum_of_blocks(typename V::Tag(), added_up(some)));
      *c = adds ? *c + sum : sum;
    } else {
#pragma GCC unroll 8
      for (int group = 0; group < columns / side; ++group) {
        const hn::CappedTag<T, side> tag;
        auto sum = sum_of_blocks(typename V::Tag(), added_up(v + group * side));
        T* to = c + group * side;
        hn::StoreU(adds ? hn::Add(hn::LoadU(tag, to), sum) : sum, tag, to);
      }
    }
  }

#if HWY_TARGET == HWY_SCALAR
  static Raw added_up(const Raw* v) { return *v; }
  static Raw sum_of_blocks(typename V::Tag, Raw v) { return v; }
#else
  /// In lane j of each block of 16 bytes: the sum of that block of v_j.
  static HWY_INLINE Raw added_up(const Raw* v) {
    const typename V::Tag tag;
    Raw first = hn::Add(hn::InterleaveLower(tag, v[0], v[1]), hn::InterleaveUpper(tag, v[0], v[1]));
    if constexpr (Product::square_lanes == 2) {
      return first;
    } else {
      Raw second = hn::Add(hn::InterleaveLower(tag, v[2], v[3]), hn::InterleaveUpper(tag, v[2], v[3]));
      const hn::Repartition<double, typename V::Tag> pairs;
      auto a = hn::BitCast(pairs, first), b = hn::BitCast(pairs, second);
      return hn::Add(hn::BitCast(tag, hn::InterleaveLower(pairs, a, b)),
                     hn::BitCast(tag, hn::InterleaveUpper(pairs, a, b)));
    }
  }
  /// The sum of a vector's blocks of 16 bytes.
  template <class Tag, class Blocks>
  static HWY_INLINE auto sum_of_blocks(Tag, Blocks v) {
    if constexpr (hn::MaxLanes(Tag()) == Product::square_lanes) {
      return v;
    } else {
      const hn::Half<Tag> half;
      return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
#endif
};

}  // namespace reel::detail::inline REEL_TARGET
