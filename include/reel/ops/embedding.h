#pragma once

#include <cstdint>

#include <reel/tensor.h>

namespace reel {

/// Options of `embedding`.
struct EmbeddingOptions {
  /// Whether `Tape::backward` puts the gradient of a table that is a parameter into its row_grad(): only the rows that
  /// were read, which optimisers then update without touching others. Several such gradients accumulate by rows;
  /// accumulated with a dense gradient, and for `Tape::gradient`, the gradient is dense. Default false.
  bool row_gradient = false;
};

/// Rows of a table: table (V, D), indices (…) → (…, D).
/// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64; ShapeError unless the
/// table is a matrix; DeviceError.
/// Source: PyTorch's embedding.
Tensor embedding(const Arg& table, const Arg& indices, EmbeddingOptions options = {});

/// How the rows of a bag are reduced to one: their sum, mean or largest elements.
enum class BagMode : std::uint8_t { sum, mean, max };

/// Options of `embedding_bag`.
struct EmbeddingBagOptions {
  /// How the rows of a bag are reduced. Default BagMode::mean.
  BagMode mode = BagMode::mean;
  /// Where each bag starts in a vector of indices: (B) of i32 or i64, 0 first, ascending. Undefined (default) for
  /// indices (B, L).
  Tensor offsets = {};
  /// A factor for each row, in the shape of the indices; for BagMode::sum only. Undefined (default): 1.
  Tensor per_sample_weights = {};
  /// Whether `Tape::backward` puts the gradient of a table that is a parameter into its row_grad(): only the rows that
  /// were read, which optimisers then update without touching others. Accumulated with a dense gradient, for
  /// `Tape::gradient` and for BagMode::max, the gradient is dense. Default false.
  bool row_gradient = false;
};

/// The sum, mean or largest elements of rows of a table (V, D), bag by bag, without forming the rows for all bags:
/// indices (B, L), or a vector and offsets → (B, D). An empty bag gives zeros. The first of equal largest elements has
/// the gradient.
/// Throws: IndexError for an index or an offset out of range; ShapeError, DTypeError where operands do not fit; Error
/// for per-sample weights with a mode other than BagMode::sum.
/// Source: PyTorch's embedding_bag.
Tensor embedding_bag(const Arg& table, const Arg& indices, const EmbeddingBagOptions& options = {});

}  // namespace reel
