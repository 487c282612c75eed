#pragma once

#include <reel/nn/linear.h>

// Attention over keys (B, S, …) for queries (B, L, …), or for a single one for each example, (B, …). A query for which no
// key takes part gets zeros.
// All throw ShapeError and DTypeError for what does not fit; their constructors throw ShapeError unless all sizes are
// positive.

namespace reel::nn {

/// Which keys do not take part. Source: PyTorch's MultiheadAttention.
struct AttentionMasks {
  /// (L, S); or by head (B · heads, L, S), (B or 1, heads or 1, L, S): bool, true where a key takes no part for a query; or, in
  /// the queries' dtype, added to the scores.
  Tensor attention_mask = {};
  /// (B, S), bool: true where a key is padding; of keys that are Packed, transpose(!keys.mask()).
  Tensor key_padding_mask = {};
  /// Key j takes part for queries i ≥ j only.
  bool causal = false;
};

struct MultiHeadAttentionOptions {
  bool bias = true;
  /// Probability with which a weight becomes 0 while training.
  double dropout = 0;
  /// Widths of keys and values; 0: that of the queries.
  std::int64_t key_size = 0, value_size = 0;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// concat(head_1 … head_n) W_O, head_i = softmax(Q_i K_iᵀ / √D) V_i, where Q_i, K_i and V_i are D = size / heads columns each of
/// query(q), key(k) and value(v). q: (B, L, size), k: (B, S, key_size), v: (B, S, value_size) → (B, L, size); or all without
/// B. Matrices start with xavier_uniform, `output` as Linear does, biases at 0.
/// Source: Vaswani et al., Attention is all you need (2017); PyTorch's MultiheadAttention with batch_first.
struct MultiHeadAttention : Module {
  Linear query, key, value;  ///< (…, width) → (…, size)
  Linear output;             ///< (…, size) → (…, size)

  /// Throws: ShapeError unless the heads divide the size; Error unless the dropout lies in [0, 1].
  MultiHeadAttention(std::int64_t size, std::int64_t heads, MultiHeadAttentionOptions options = {},
                     Location where = Location::here());
  MultiHeadAttention(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                     MultiHeadAttentionOptions options = {}, Location where = Location::here())
      : MultiHeadAttention(size, heads, options, where) {
    join(parent, name, where);
  }

  Tensor operator()(const Arg& queries, const Tensor& keys, const Tensor& values,
                    const AttentionMasks& masks = {}) const;
  /// Of a sequence with itself.
  Tensor operator()(const Arg& x, const AttentionMasks& masks = {}) const;

  /// The weights of each head without dropout, (B, heads, L, S), or without B; to look at.
  Tensor weights(const Arg& queries, const Tensor& keys, const AttentionMasks& masks = {}) const;

  std::int64_t heads() const { return heads_; }

 private:
  std::int64_t heads_;
  double dropout_;
};

/// What a query finds.
struct Attended {
  Tensor context;  ///< (B, L, K) or (B, K): Σ_s weights_s keys_s
  Tensor weights;  ///< (B, L, S) or (B, S)
};

inline std::vector<Tensor*> tensors_of(Attended& result) { return {&result.context, &result.weights}; }

struct AdditiveAttentionOptions {
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// weights = softmax_s(v · tanh(q W_q + k_s W_k)): q: (B, L, Q) or (B, Q), k: (B, S, K). Everything starts with xavier_uniform.
/// Source: Bahdanau et al., Neural machine translation by jointly learning to align and translate (ICLR 2015).
struct BahdanauAttention : Module {
  Parameter W_q;  ///< (Q, size)
  Parameter W_k;  ///< (K, size)
  Parameter v;    ///< (size, 1)

  BahdanauAttention(std::int64_t query_size, std::int64_t key_size, std::int64_t size,
                    AdditiveAttentionOptions options = {}, Location where = Location::here());
  BahdanauAttention(Module& parent, std::string_view name, std::int64_t query_size, std::int64_t key_size,
                    std::int64_t size, AdditiveAttentionOptions options = {}, Location where = Location::here())
      : BahdanauAttention(query_size, key_size, size, options, where) {
    join(parent, name, where);
  }

  /// key_padding_mask: (B, S), bool, true where a key is padding.
  Attended operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask = {}) const;
};

enum class LuongScore : std::uint8_t {
  dot,      ///< q · k
  general,  ///< q W k
  concat,   ///< v · tanh([q; k] W)
};

struct LuongAttentionOptions {
  LuongScore score = LuongScore::general;
  /// Of W's columns for `concat`; 0: Q.
  std::int64_t size = 0;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// weights = softmax_s(score(q, k_s)): q: (B, L, Q) or (B, Q), k: (B, S, K). Everything starts with xavier_uniform.
/// Source: Luong et al., Effective approaches to attention-based neural machine translation (EMNLP 2015), section 3.1.
struct LuongAttention : Module {
  Parameter W;  ///< (Q, K) for `general`, (Q + K, size) for `concat`
  Parameter v;  ///< (size, 1) for `concat`

  /// Throws: ShapeError for `dot` unless Q is K.
  LuongAttention(std::int64_t query_size, std::int64_t key_size, LuongAttentionOptions options = {},
                 Location where = Location::here());
  LuongAttention(Module& parent, std::string_view name, std::int64_t query_size, std::int64_t key_size,
                 LuongAttentionOptions options = {}, Location where = Location::here())
      : LuongAttention(query_size, key_size, options, where) {
    join(parent, name, where);
  }

  /// key_padding_mask: (B, S), bool, true where a key is padding.
  Attended operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask = {}) const;

 private:
  std::int64_t query_size_, key_size_;
  LuongScore score_;
};

}  // namespace reel::nn
