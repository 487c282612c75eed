#pragma once

#include <optional>

#include <reel/random.h>
#include <reel/tensor.h>

namespace reel {

/// Options of `scaled_dot_product_attention`.
struct AttentionOptions {
  /// A mask that broadcasts to (…, L, S): bool, true where a key takes part; or, in the queries' dtype, added to the
  /// scores. Undefined (default): all keys take part.
  Tensor mask = {};
  /// Whether key j takes part only for queries i ≥ j. Default false.
  bool causal = false;
  /// The factor of the scores q kᵀ; default 1 / √E.
  std::optional<double> scale = {};
  /// The probability, in [0, 1], with which an attention weight becomes 0; the others are divided by 1 − dropout.
  /// Default 0.
  double dropout = 0;
  /// The generator of the dropout. Null: this thread's generator.
  Generator* generator = nullptr;
};

/// softmax(scale · q kᵀ + mask) v: queries (…, L, E), keys (…, S, E), values (…, S, D) → (…, L, D). Leading axes
/// broadcast. A query for which no key takes part gets zeros. bf16 and f16 are rounded once.
/// Throws: ShapeError, DTypeError, DeviceError where operands do not fit; Error for a probability outside [0, 1].
/// Source: Vaswani et al., Attention is all you need (2017); the blocks: Dao et al., FlashAttention (2022).
Tensor scaled_dot_product_attention(const Arg& queries, const Arg& keys, const Arg& values,
                                    const AttentionOptions& options = {});

}  // namespace reel
