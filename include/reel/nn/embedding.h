#pragma once

#include <optional>

#include <reel/nn/module.h>
#include <reel/ops/embedding.h>

namespace reel::nn {

/// Options of Embedding.
struct EmbeddingLayerOptions {
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
  /// Whether the table gets its gradient by rows: see reel::EmbeddingOptions. Default false.
  bool row_gradient = false;
  /// The index of a padding symbol: its vector is initialised with 0 and gets no gradient. A negative one counts from
  /// the end. Default: none.
  std::optional<std::int64_t> padding_index = {};
  /// The initial values of the table; null (default): normal with mean 0 and standard deviation 1.
  Initialiser initialiser = {};
};

/// Learnt vectors of `count` symbols: indices (…) of i32 or i64 → (…, size).
/// Source: PyTorch's Embedding.
struct Embedding : Module {
  Parameter table;  ///< (count, size)

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless both sizes are positive; IndexError for a padding index out of range.
  Embedding(std::int64_t count, std::int64_t size, EmbeddingLayerOptions options = {},
            Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both sizes are
  /// positive; IndexError for a padding index out of range.
  Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t size,
            EmbeddingLayerOptions options = {}, Location where = Location::here())
      : Embedding(count, size, options, where) {
    join(parent, name, where);
  }

  /// The vectors of symbols: indices (…) → (…, size); negative ones count from the end.
  /// Throws: IndexError for an index out of range; DTypeError for indices other than i32 or i64.
  Tensor operator()(const Arg& indices) const;

 private:
  bool row_gradient_;
  std::optional<std::int64_t> padding_index_;
};

/// Options of EmbeddingBag.
struct EmbeddingBagLayerOptions {
  BagMode mode = BagMode::mean;  ///< how the vectors of a bag are reduced; default their mean
  DType dtype = DType::f32;      ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
  /// The initial values of the table; null (default): normal with mean 0 and standard deviation 1.
  Initialiser initialiser = {};
  /// Whether the table gets its gradient by rows: see reel::EmbeddingBagOptions. Default false.
  bool row_gradient = false;
};

/// The sum, mean or largest elements of learnt vectors of symbols, bag by bag: `embedding_bag` with its own table.
/// Source: PyTorch's EmbeddingBag.
struct EmbeddingBag : Module {
  Parameter table;  ///< (count, size)

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless both sizes are positive.
  EmbeddingBag(std::int64_t count, std::int64_t size, EmbeddingBagLayerOptions options = {},
               Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless both sizes are
  /// positive.
  EmbeddingBag(Module& parent, std::string_view name, std::int64_t count, std::int64_t size,
               EmbeddingBagLayerOptions options = {}, Location where = Location::here())
      : EmbeddingBag(count, size, options, where) {
    join(parent, name, where);
  }

  /// The reduced vectors of bags: indices (B, L), or a vector of them and the start of each bag, offsets (B) → (B,
  /// size). `per_sample_weights`: a factor for each index, for BagMode::sum only.
  /// Throws: IndexError for an index or an offset out of range; ShapeError, DTypeError where operands do not fit; Error
  /// for per-sample weights with another mode.
  Tensor operator()(const Arg& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) const;

 private:
  BagMode mode_;
  bool row_gradient_;
};

}  // namespace reel::nn
