#pragma once

#include <optional>

#include <reel/nn/module.h>
#include <reel/ops/embedding.h>

namespace reel::nn {

struct EmbeddingOptions {
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
  /// The table gets its gradient by rows: see reel::EmbeddingOptions.
  bool row_gradient = false;
  /// A symbol that stands where there is none: its vector starts at 0 and gets no gradient. A negative one counts from the
  /// end.
  std::optional<std::int64_t> padding_index = {};
  /// Of the table; null: normal with mean 0 and deviation 1.
  Initialiser initialiser = {};
};

/// A learnt vector for each of `count` symbols: indices (…) of i32 or i64 → (…, size).
/// Source: PyTorch's Embedding.
struct Embedding : Module {
  Parameter table;  ///< (count, size)

  /// Throws: ShapeError unless both sizes are positive; IndexError if the padding index is no symbol.
  Embedding(std::int64_t count, std::int64_t size, EmbeddingOptions options = {}, Location where = Location::here());
  Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t size, EmbeddingOptions options = {},
            Location where = Location::here())
      : Embedding(count, size, options, where) {
    join(parent, name, where);
  }

  /// Throws: IndexError for an index that is no symbol; negative ones count from the end.
  Tensor operator()(const Arg& indices) const;

 private:
  bool row_gradient_;
  std::optional<std::int64_t> padding_index_;
};

struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
  /// Of the table; null: normal with mean 0 and deviation 1.
  Initialiser initialiser = {};
};

/// The sum, mean or largest elements of learnt vectors of symbols, bag by bag: `embedding_bag` of a table of its own.
/// Source: PyTorch's EmbeddingBag.
struct EmbeddingBag : Module {
  Parameter table;  ///< (count, size)

  /// Throws: ShapeError unless both sizes are positive.
  EmbeddingBag(std::int64_t count, std::int64_t size, EmbeddingBagOptions options = {},
               Location where = Location::here());
  EmbeddingBag(Module& parent, std::string_view name, std::int64_t count, std::int64_t size,
               EmbeddingBagOptions options = {}, Location where = Location::here())
      : EmbeddingBag(count, size, options, where) {
    join(parent, name, where);
  }

  /// Indices (B, L), or a vector of them and where each bag starts, offsets (B) → (B, size). `per_sample_weights`: a factor
  /// for each index, for sums. Throws: as `embedding_bag`.
  Tensor operator()(const Arg& indices, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) const;

 private:
  BagMode mode_;
};

}  // namespace reel::nn
