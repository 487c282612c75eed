#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gemm.h"
#include "skinny_product.h"

// Products of the rows of a time step with weights that are constant over the steps. It is compiled once per
// instruction set.
//
// The weights are packed once per layer, tile by tile, so that each step reads them sequentially; the caller keeps the
// rows packed. In place, W_h (512, 2048) of f32 takes a page for each row of a tile.

namespace reel::detail::inline REEL_TARGET {

/// The rows of a step, panel by panel: in each, the elements of all rows are interleaved. A row's position does not
/// depend on the number of rows in a step.
template <class T>
class PackedRows {
 public:
  PackedRows(std::int64_t rows, std::int64_t depth)
      : height_(height_for(rows)),
        depth_(depth),
        elements_(memory_.get<T>(std::max<std::int64_t>((rows + height_ - 1) / height_ * height_ * depth, 1))) {}

  std::int64_t height() const { return height_; }
  const T* panel(std::int64_t row) const { return elements_ + row * depth_; }
  void put(std::int64_t row, std::int64_t begin, const T* from, std::int64_t count) {
    T* to = elements_ + row / height_ * height_ * depth_ + begin * height_ + row % height_;
    for (std::int64_t i = 0; i < count; ++i) to[i * height_] = from[i];
  }

 private:
  // The smallest number of panels, of about equal height.
  static std::int64_t height_for(std::int64_t rows) {
    constexpr std::int64_t most = Gemm<T>::tile_rows;
    std::int64_t panels = std::max<std::int64_t>((rows + most - 1) / most, 1);
    return std::max<std::int64_t>((rows + panels - 1) / panels, 1);
  }

  Scratch memory_;
  std::int64_t height_, depth_;
  T* elements_;
};

/// A matrix of `blocks` blocks of columns, each divided into groups. Groups of equal index in all blocks are adjacent.
/// The elements may be rounded to halves; for few rows, whose products are bound by reading them, they are kept so.
template <class T>
class PackedWeights {
  using Product = Gemm<T>;

 public:
  /// `rows`: the largest number of rows to multiply. `rounded`: bf16, f16, or f32 for weights that are not rounded.
  PackedWeights(const Matrix<T>& weights, std::int64_t blocks, std::int64_t rows, DType rounded)
      : depth_(weights.rows), columns_(weights.columns / blocks), blocks_(blocks), group_(Product::tile_columns) {
    if (rounded == DType::bf16)
      pack_rounded<BFloat16>(weights, rows);
    else if (rounded == DType::f16)
      pack_rounded<Float16>(weights, rows);
    else
      pack<T>(weights);
  }

  std::int64_t columns() const { return columns_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t depth() const { return depth_; }
  /// The number of columns in a group.
  std::int64_t group() const { return group_; }

  /// out (rows, blocks group) = the packed rows times the groups that start at column `begin` of each block.
  void multiply(T* out, const PackedRows<T>& rows, std::int64_t count, std::int64_t begin) const {
    if (count == 0) return;  // behind the last step
    if (depth_ == 0) return static_cast<void>(std::fill_n(out, count * blocks_ * group_, T(0)));
    if (kept_ == DType::bf16) return multiply_halves<BFloat16>(out, rows, count, begin);
    if (kept_ == DType::f16) return multiply_halves<Float16>(out, rows, count, begin);
    for (std::int64_t block = 0; block < blocks_; ++block)
      multiply_tiles(out + block * group_, rows, count, elements_ + place(begin, block), width(begin));
  }

 private:
  // A panel of this depth stays in the first-level cache.
  static constexpr std::int64_t depth_block = 512;

  // Packs tiles of elements that are rounded to H.
  template <class H>
  void pack(const Matrix<T>& weights) {
    elements_ = memory_.get<T>(elements());
    for (std::int64_t begin = 0; begin < columns_; begin += group_)
      for (std::int64_t block = 0; block < blocks_; ++block) {
        T* to = elements_ + place(begin, block);
        Product::pack_columns(weights.part(0, depth_, block * columns_ + begin, std::min(group_, columns_ - begin)), to,
                              false);
        if constexpr (!std::is_same_v<H, T>) round_row<H>(to, depth_ * width(begin));
      }
  }

  template <class H>
  void pack_rounded(const Matrix<T>& weights, std::int64_t rows) {
    if constexpr (std::is_same_v<T, float>)
      rows <= SkinnyProduct<float, H>::most_rows ? pack_halves<H>(weights) : pack<H>(weights);
  }

  // In a group the columns of all blocks are side by side, with zeros in place of missing ones. One row has too few
  // sums to keep the processor busy, unless a group is wide.
  template <class H>
  void pack_halves(const Matrix<T>& weights) {
    kept_ = dtype_of<H>();
    if (blocks_ == 1) group_ = 4 * Product::tile_columns;
    std::int64_t stride = blocks_ * group_;
    H* all = memory_.get<H>(elements());
    elements_ = reinterpret_cast<T*>(all);
    std::fill_n(all, elements(), H());
    Scratch memory;
    T* tile = memory.get<T>(std::max<std::int64_t>(depth_ * Product::tile_columns, 1));
    for (std::int64_t block = 0; block < blocks_; ++block)
      for (std::int64_t column = 0; column < columns_; column += Product::tile_columns) {
        std::int64_t there = std::min<std::int64_t>(Product::tile_columns, columns_ - column), wide = width(column);
        Product::pack_columns(weights.part(0, depth_, block * columns_ + column, there), tile, false);
        H* to = all + column / group_ * group_ * blocks_ * depth_ + block * group_ + column % group_;
        for (std::int64_t k = 0; k < depth_; ++k) narrow_row(to + k * stride, tile + k * wide, wide);
      }
  }

  void multiply_tiles(T* out, const PackedRows<T>& rows, std::int64_t count, const T* tile, std::int64_t width) const {
    const auto& tiles = Product::tiles[width == Product::lanes ? 0 : 1];
    std::int64_t height = rows.height(), stride = blocks_ * group_;
    for (std::int64_t k = 0; k < depth_; k += depth_block)
      for (std::int64_t row = 0; row < count; row += height)
        tiles[static_cast<std::size_t>(std::min(height, count - row) - 1)](
            std::min(depth_block, depth_ - k), rows.panel(row) + k * height, height, tile + k * width, width,
            out + row * stride, stride, k > 0);
  }

  template <class H>
  void multiply_halves(T* out, const PackedRows<T>& rows, std::int64_t count, std::int64_t begin) const {
    if constexpr (std::is_same_v<T, float>) {
      std::int64_t stride = blocks_ * group_, height = rows.height();
      const H* group = reinterpret_cast<const H*>(elements_) + begin * blocks_ * depth_;
      for (std::int64_t k = 0; k < depth_; k += depth_block) {
        std::int64_t depth = std::min(depth_block, depth_ - k);
        Matrix<float> left{rows.panel(0) + k * height, count, depth, 1, height};
        Matrix<H> right{group + k * stride, depth, stride, stride, 1};
        SkinnyProduct<float, H>::multiply_block(out, stride, left, right, k > 0);
      }
    }
  }

  std::int64_t elements() const {
    return std::max<std::int64_t>((columns_ + group_ - 1) / group_ * group_ * blocks_ * depth_, 1);
  }
  // The width that pack_columns uses.
  std::int64_t width(std::int64_t begin) const {
    return columns_ - begin > Product::lanes ? Product::tile_columns : Product::lanes;
  }
  std::int64_t place(std::int64_t begin, std::int64_t block) const {
    return begin * blocks_ * depth_ + block * depth_ * width(begin);
  }

  Scratch memory_;
  std::int64_t depth_, columns_, blocks_, group_;
  DType kept_ = DType::f32;  // bf16 or f16 if the elements are kept in halves
  T* elements_;
};

}  // namespace reel::detail::inline REEL_TARGET
