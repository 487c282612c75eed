#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "gemm.h"

// Products of the rows of a time step with weights that are constant over the steps. It is compiled once per
// instruction set.
//
// The weights are packed once per layer, tile by tile, so that each step reads them sequentially; the caller keeps the
// rows packed. In place, W_h (512, 2048) of f32 takes a page for each row of a tile.

namespace reel::detail {
inline namespace REEL_TARGET {

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

/// A matrix of `blocks` blocks of columns, each divided into groups as wide as a tile. Groups of equal index in all
/// blocks are adjacent.
template <class T>
class PackedWeights {
  using Product = Gemm<T>;

 public:
  static constexpr std::int64_t group = Product::tile_columns;

  PackedWeights(const Matrix<T>& weights, std::int64_t blocks)
      : depth_(weights.rows), columns_(weights.columns / blocks), blocks_(blocks) {
    elements_ = memory_.get<T>(std::max<std::int64_t>((columns_ + group - 1) / group * group * blocks * depth_, 1));
    for (std::int64_t begin = 0; begin < columns_; begin += group)
      for (std::int64_t block = 0; block < blocks; ++block)
        Product::pack_columns(weights.part(0, depth_, block * columns_ + begin, std::min(group, columns_ - begin)),
                              elements_ + place(begin, block), false);
  }

  std::int64_t columns() const { return columns_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t depth() const { return depth_; }

  /// out (rows, group) = the packed rows times the group of a block that starts at column `begin`.
  void multiply(T* out, const PackedRows<T>& rows, std::int64_t count, std::int64_t begin, std::int64_t block) const {
    // A panel of this depth stays in the first-level cache.
    constexpr std::int64_t depth_block = 512;
    std::int64_t vectors = width(begin) / Product::lanes, height = rows.height();
    const T* tile = elements_ + place(begin, block);
    for (std::int64_t k = 0; k < depth_; k += depth_block)
      for (std::int64_t row = 0; row < count; row += height)
        Product::tiles[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(
            std::min(height, count - row) - 1)](std::min(depth_block, depth_ - k), rows.panel(row) + k * height, height,
                                                tile + k * width(begin), width(begin), out + row * group, group, k > 0);
    if (depth_ == 0) std::fill_n(out, count * group, T(0));
  }

 private:
  // The width that pack_columns uses.
  std::int64_t width(std::int64_t begin) const {
    return columns_ - begin > Product::lanes ? Product::tile_columns : Product::lanes;
  }
  std::int64_t place(std::int64_t begin, std::int64_t block) const {
    return begin * blocks_ * depth_ + block * depth_ * width(begin);
  }

  Scratch memory_;
  std::int64_t depth_, columns_, blocks_;
  T* elements_;
};

}  // namespace REEL_TARGET
}  // namespace reel::detail
