#pragma once

#include <reel/nn/module.h>

namespace reel::nn {

struct EmbeddingOptions {
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
  /// The table gets its gradient by rows: see reel::EmbeddingOptions.
  bool row_gradient = false;
};

/// A learnt vector for each of `count` symbols: indices (…) of i32 or i64 → (…, size).
/// The table starts normal with mean 0 and deviation 1. Source: PyTorch's Embedding.
struct Embedding : Module {
  Parameter table;  ///< (count, size)

  /// Throws: ShapeError unless both sizes are positive.
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
};

}  // namespace reel::nn
