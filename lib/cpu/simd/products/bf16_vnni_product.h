#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "../../onednn/onednn_product.h"
#include "gemm.h"
#include "transpose.h"

// Products of bf16 by oneDNN's kernels, which multiply pairs of elements. It is compiled once per instruction set.
//
// The right operand is always packed in the layout that the kernels read, in advance or during the product, so that
// results do not depend on it: strips of 64 columns; in each, the elements of two rows are interleaved. A kernel is
// generated for fixed sizes, which takes 100 to 600 µs, so rows are computed in few heights, depths in multiples of 32,
// and columns in panels that stay in the second-level cache. Few rows are bound by packing b, which a parameter needs
// once: see "bf16 products" in tools/benchmark/README.md. Rows that are not aligned to cache lines halve the speed of a
// kernel.

namespace reel::detail::inline REEL_TARGET {

class Bf16VnniProduct {
  using Half = BFloat16;
  static constexpr std::int64_t strip = 64, depth_unit = 32, tile = 16;

 public:
  /// Threads begin at multiples of this many rows, or of panel_columns(depth) columns: each element's bits are then
  /// those of the whole product.
  static constexpr std::int64_t rows_together = 128;
  /// Panels of half a megabyte stay in the second-level cache.
  static std::int64_t panel_columns(std::int64_t depth) {
    return std::max((1 << 18) / whole(depth, depth_unit) / strip, std::int64_t{1}) * strip;
  }
  /// The number of elements of a packed matrix.
  static std::int64_t size(std::int64_t rows, std::int64_t columns) {
    return whole(rows, depth_unit) * whole(columns, strip);
  }

  static void pack(const Matrix<Half>& b, Half* to) {
    std::int64_t step = whole(b.rows, depth_unit) * strip, end = whole(b.columns, strip) / strip;
    for (std::int64_t i = 0; i < end;) {
      // Several strips at a time: longer pieces of a large matrix's rows are read faster.
      std::int64_t count = std::min(strips_together, end - i);
      if (b.columns < (i + count) * strip) count = 1;
      Matrix<Half> part = b.part(0, b.rows, i * strip, std::min(count * strip, b.columns - i * strip));
      if (part.column_stride == 1)
        pack_rows(part, to + i * step, step);
      else
        for (std::int64_t j = 0; j < count; ++j)
          pack_columns(part.part(0, b.rows, j * strip, std::min(strip, part.columns - j * strip)), to + (i + j) * step);
      i += count;
    }
  }

  /// c = a times columns [begin, end) of a packed matrix; `begin` is the first of a panel.
  static void multiply(Half* c, std::int64_t c_stride, const Matrix<Half>& a, const Half* packed, std::int64_t begin,
                       std::int64_t end) {
    std::int64_t depth = whole(a.columns, depth_unit);
    multiply_panels(c, c_stride, a, end - begin,
                    [&](std::int64_t j, std::int64_t) { return packed + (begin + j) * depth; });
  }
  /// c = a b. Each panel is packed right before it is used, so that it stays in the caches.
  static void multiply(Half* c, std::int64_t c_stride, const Matrix<Half>& a, const Matrix<Half>& b) {
    static constinit ThreadScratch scratch;
    multiply_panels(c, c_stride, a, b.columns, [&](std::int64_t j, std::int64_t count) {
      Half* packed = scratch.get<Half>(size(b.rows, count));
      pack(b.part(0, b.rows, j, count), packed);
      return packed;
    });
  }

 private:
  static constexpr std::int64_t strips_together = 4;
  static constexpr std::array<std::int64_t, 4> heights = {rows_together, 64, 32, tile};

  // Contiguous rows; the last ones, which do not fill a tile, are followed by readable rows.
  struct Rows {
    const Half* data;
    std::int64_t count;
    const Half* rest;
  };

  static std::int64_t whole(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

  template <class Panel>
  static void multiply_panels(Half* c, std::int64_t c_stride, const Matrix<Half>& a, std::int64_t columns,
                              Panel panel) {
    std::int64_t depth = whole(a.columns, depth_unit), rest = a.rows % tile;
    static constinit ThreadScratch scratch;
    // Kernels read rows that are not aligned to cache lines at half the speed.
    if (a.column_stride == 1 && a.row_stride == depth && a.columns == depth &&
        reinterpret_cast<std::uintptr_t>(a.data) % 64 == 0) {
      const Half* last = rest == 0 ? nullptr : packed_rows(a.part(a.rows - rest, rest, 0, depth), depth, scratch);
      return multiply_rows(c, c_stride, {a.data, a.rows, last}, depth, columns, panel);
    }
    std::int64_t block = std::max((1 << 21) / depth / rows_together, std::int64_t{1}) * rows_together;
    for (std::int64_t row = 0; row < a.rows; row += block) {
      std::int64_t count = std::min(block, a.rows - row);
      const Half* rows = packed_rows(a.part(row, count, 0, a.columns), depth, scratch);
      multiply_rows(c + row * c_stride, c_stride, {rows, count, rows + count / tile * tile * depth}, depth, columns,
                    panel);
    }
  }

  template <class Panel>
  static void multiply_rows(Half* c, std::int64_t c_stride, const Rows& a, std::int64_t depth, std::int64_t columns,
                            Panel panel) {
    std::int64_t together = panel_columns(depth);
    for (std::int64_t j = 0; j < columns; j += together) {
      std::int64_t there = std::min(together, columns - j), row = 0;
      const Half* b = panel(j, there);
      for (std::int64_t height : heights)
        for (; a.count - row >= height; row += height)
          multiply_tile(c + row * c_stride + j, c_stride, height, there, a.data + row * depth, height, depth, b);
      if (row < a.count) multiply_tile(c + row * c_stride + j, c_stride, a.count - row, there, a.rest, tile, depth, b);
    }
  }

  // Computes `rows` and `columns` of a product of `height` rows and columns in whole tiles.
  static void multiply_tile(Half* c, std::int64_t c_stride, std::int64_t rows, std::int64_t columns, const Half* a,
                            std::int64_t height, std::int64_t depth, const Half* b) {
    std::int64_t wide = whole(columns, tile);
    if (rows == height && c_stride == wide) return multiply_vnni(c, a, b, height, wide, depth);
    static constinit ThreadScratch scratch;
    Half* sums = scratch.get<Half>(height * wide);
    multiply_vnni(sums, a, b, height, wide, depth);
    for (std::int64_t row = 0; row < rows; ++row) std::copy_n(sums + row * wide, columns, c + row * c_stride);
  }

  static void pack_rows(const Matrix<Half>& b, Half* to, std::int64_t step) {
    std::int64_t depth = whole(b.rows, depth_unit);
    for (std::int64_t k = 0; k < depth; k += 2)
      for (std::int64_t j = 0; j < b.columns; j += strip) {
        Half* place = to + j / strip * step + k * strip;
        std::int64_t there = std::min(strip, b.columns - j);
        if (there == strip && k + 1 < b.rows)
          interleave(b.at(k, j), b.at(k + 1, j), place);
        else
          pack_pair(b.part(0, b.rows, j, there), k, place);
      }
  }
  static HWY_INLINE void interleave(const Half* even, const Half* odd, Half* to) {
    constexpr std::int64_t lanes = HWY_LANES(std::uint32_t);
    const hn::ScalableTag<std::uint32_t> words;
    const hn::Rebind<std::uint16_t, decltype(words)> halves;
    for (std::int64_t i = 0; i < strip; i += lanes) {
      auto low = hn::PromoteTo(words, hn::LoadU(halves, &even[i].bits));
      auto high = hn::PromoteTo(words, hn::LoadU(halves, &odd[i].bits));
      hn::StoreU(hn::Or(low, hn::ShiftLeft<16>(high)), words, reinterpret_cast<std::uint32_t*>(to) + i);
    }
  }
  // Interleaves rows k and k + 1 of a strip, with 0 in place of missing elements.
  static void pack_pair(const Matrix<Half>& b, std::int64_t k, Half* to) {
    Half pair[2][strip] = {};
    for (std::int64_t odd = 0; odd < std::min<std::int64_t>(b.rows - k, 2); ++odd)
      if (b.column_stride == 1)
        std::copy_n(b.at(k + odd, 0), b.columns, pair[odd]);
      else
        for (std::int64_t i = 0; i < b.columns; ++i) pair[odd][i] = *b.at(k + odd, i);
    interleave(pair[0], pair[1], to);
  }
  // Packs a strip of any strides. If columns are contiguous, pairs are words of the transposed matrix.
  static void pack_columns(const Matrix<Half>& b, Half* to) {
    std::int64_t depth = whole(b.rows, depth_unit), pairs = b.rows / 2;
    // One cache line at a time: columns that are 1 KB apart evict each other from the first-level cache.
    using Word = Block<std::uint32_t>;
    constexpr std::int64_t line = 64 / sizeof(std::uint32_t);
    bool whole_words = b.row_stride == 1 && b.column_stride % 2 == 0 && b.columns == strip;
    std::int64_t done = whole_words ? pairs / line * line : 0;
    for (std::int64_t first = 0; first < done; first += line)
      for (std::int64_t i = 0; i < strip; i += Word::lanes)
        for (std::int64_t pair = first; pair < first + line; pair += Word::lanes)
          Word::transpose(reinterpret_cast<std::uint32_t*>(to) + pair * strip + i, strip,
                          reinterpret_cast<const std::uint32_t*>(b.at(2 * pair, i)), b.column_stride / 2);
    for (std::int64_t k = 2 * done; k < depth; k += 2) pack_pair(b, k, to + k * strip);
  }

  // Rows without gaps, padded to whole heights.
  static const Half* packed_rows(const Matrix<Half>& a, std::int64_t depth, ThreadScratch& scratch) {
    Half* to = scratch.get<Half>(whole(a.rows, tile) * depth);
    if (a.column_stride == 1 || a.row_stride != 1) {
      for (std::int64_t i = 0; i < a.rows; ++i)
        if (a.column_stride == 1)
          std::copy_n(a.at(i, 0), a.columns, to + i * depth);
        else
          for (std::int64_t k = 0; k < a.columns; ++k) to[i * depth + k] = *a.at(i, k);
    } else {
      transpose_whole(a, depth, to);
    }
    for (std::int64_t i = 0; i < a.rows; ++i) std::fill(to + i * depth + a.columns, to + (i + 1) * depth, Half());
    std::fill(to + a.rows * depth, to + whole(a.rows, tile) * depth, Half());
    return to;
  }
  // Transposes through a buffer that stays in the first-level cache.
  static void transpose_whole(const Matrix<Half>& a, std::int64_t depth, Half* to) {
    constexpr std::int64_t side = 128;
    alignas(64) std::uint16_t buffer[side * side];
    for (std::int64_t i = 0; i < a.rows; i += side)
      for (std::int64_t k = 0; k < a.columns; k += side) {
        std::int64_t rows = std::min(side, a.rows - i), count = std::min(side, a.columns - k);
        transpose_panel(buffer, side, reinterpret_cast<const std::uint16_t*>(a.at(i, k)), a.column_stride, rows, count,
                        0);
        for (std::int64_t row = 0; row < rows; ++row)
          std::memcpy(static_cast<void*>(to + (i + row) * depth + k), buffer + row * side,
                      static_cast<std::size_t>(count) * sizeof(Half));
      }
  }
};

}  // namespace reel::detail::inline REEL_TARGET
