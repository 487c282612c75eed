#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// How the rows of a bag are brought together.
enum class BagMode : std::uint8_t { sum, mean, max };

struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  /// Where each bag starts among a vector of indices: (B) of i32 or i64, 0 first, ascending.
  Tensor offsets = {};
  /// A factor for each row, in the shape of the indices; for sums only.
  Tensor per_sample_weights = {};
};

/// The sum, mean or largest elements of rows of a table (V, D), bag by bag, without forming the rows for all bags: indices
/// (B, L), or a vector and offsets → (B, D). An empty bag gives zeros. Of equal largest elements the first has the gradient.
/// Throws: IndexError for an index or an offset out of range; ShapeError, DTypeError where operands do not fit; Error for
/// weights of a mean or a maximum.
/// Source: PyTorch's embedding_bag.
Tensor embedding_bag(const Arg& table, const Arg& indices, const EmbeddingBagOptions& options = {});

}  // namespace reel
