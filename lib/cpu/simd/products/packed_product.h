#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "gemm.h"

// Products with a matrix that was packed before, for matrices that are used in many products. It is compiled once per
// instruction set.
//
// The matrix is read once, sequentially, while the rows pass over each of its tiles. Few rows are bound by reading it:
// see "Packed products" in tools/benchmark/README.md. The bits are those of Gemm::multiply.

namespace reel::detail::inline REEL_TARGET {

template <class T>
class PackedProduct {
  using Product = Gemm<T>;

 public:
  /// Returns true if it pays to pack b for later products with this many rows. Products of many rows amortise packing
  /// themselves, and whole vectors that fit the second-level cache are as fast in place.
  static bool pays(std::int64_t rows, const Matrix<T>& b) {
    return rows <= 256 && (b.column_stride != 1 || b.columns % Product::lanes != 0 ||
                           !Product::multiplies_in_place(rows, b) || outgrows_cache(b.rows, b.columns));
  }
  /// The number of elements of a packed matrix.
  static std::int64_t size(std::int64_t rows, std::int64_t columns) { return rows * whole_width(columns); }
  /// Packs b in blocks of rows; in each, the tiles' columns are contiguous.
  static void pack(const Matrix<T>& b, T* to) {
    for (std::int64_t k = 0; k < b.rows; k += Product::depth_block)
      Product::pack_columns(b.part(k, std::min(Product::depth_block, b.rows - k), 0, b.columns),
                            to + k * whole_width(b.columns), false);
  }

  /// c = or += a times columns [begin, end) of a packed matrix of `columns` columns; `begin` is a multiple of 64.
  static void multiply(T* c, std::int64_t c_stride, const Matrix<T>& a, const T* packed, std::int64_t columns,
                       std::int64_t begin, std::int64_t end, bool adds) {
    // The smallest number of panels of rows, of about equal height.
    std::int64_t panels = (a.rows + Product::tile_rows - 1) / Product::tile_rows;
    bool fetches = outgrows_cache(a.columns, columns);
    T* rows = packed_columns.get<T>(a.rows * Product::depth_block);
    for (std::int64_t k = 0; k < a.columns; k += Product::depth_block) {
      std::int64_t depth = std::min(Product::depth_block, a.columns - k);
      Matrix<T> left = a.part(0, a.rows, k, depth);
      auto first = [&](std::int64_t panel) { return a.rows * panel / panels; };
      for (std::int64_t panel = 0; panel < panels; ++panel)
        Product::pack_rows(left.part(first(panel), first(panel + 1) - first(panel), 0, depth),
                           rows + first(panel) * depth);
      const T* block = packed + k * whole_width(columns);
      for (std::int64_t j = begin; j < end; j += Product::tile_columns) {
        std::int64_t wide = Product::width(columns - j, false), there = std::min(wide, end - j);
        for (std::int64_t panel = 0; panel < panels; ++panel) {
          std::int64_t row = first(panel), height = first(panel + 1) - row;
          const T *from_a = rows + row * depth, *from_b = block + j * depth;
          T* to = c + row * c_stride + j - begin;
          if (panel == 0 && fetches && there == Product::tile_columns)
            first_tiles[static_cast<std::size_t>(height - 1)](depth, from_a, from_b, to, c_stride, adds || k > 0);
          else
            Product::part_of_tile(Product::tiles[wide == Product::lanes ? 0 : 1][static_cast<std::size_t>(height - 1)],
                                  height, wide, there, depth, from_a, height, from_b, wide, to, c_stride,
                                  adds || k > 0);
        }
      }
    }
  }

 private:
  static bool outgrows_cache(std::int64_t rows, std::int64_t columns) {
    return rows * columns > (std::int64_t{1} << 20) / static_cast<int>(sizeof(T));
  }
  // The packed width of a matrix; the last tile may be one vector wide.
  static std::int64_t whole_width(std::int64_t columns) {
    std::int64_t last = columns % Product::tile_columns;
    return columns - last + (last == 0 ? 0 : Product::width(last, false));
  }

  // Prefetches the next tile, from several pages at a time: one page after the other is read at half the speed.
  struct Fetch {
    static constexpr std::int64_t page = 4096, bytes = 2 * Product::lanes * sizeof(T),
                                  pages = std::max<std::int64_t>(Product::depth_block * bytes / page, 1);
    const char* next;
    // Forced inline: g++ 12 treats a function that only prefetches as having no effect.
    HWY_INLINE void operator()(std::int64_t k) const {
      const char* from = next + k % pages * page + k / pages * bytes;
      for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
    }
  };
  template <int rows>
  static void first_tile(std::int64_t depth, const T* a, const T* b, T* c, std::int64_t c_stride, bool adds) {
    constexpr std::int64_t wide = Product::tile_columns;
    Product::template tile_beside<rows, 2>(depth, a, rows, b, wide, c, c_stride, adds,
                                           Fetch{reinterpret_cast<const char*>(b + depth * wide)});
  }
  using FirstTile = void (*)(std::int64_t depth, const T* a, const T* b, T* c, std::int64_t c_stride, bool adds);
  template <int... rows>
  static constexpr std::array<FirstTile, Product::tile_rows> make_first_tiles(std::integer_sequence<int, rows...>) {
    return {first_tile<rows + 1>...};
  }
  static constexpr std::array<FirstTile, Product::tile_rows> first_tiles =
      make_first_tiles(std::make_integer_sequence<int, Product::tile_rows>());
};

}  // namespace reel::detail::inline REEL_TARGET
