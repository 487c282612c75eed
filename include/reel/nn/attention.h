#pragma once

#include <reel/nn/linear.h>

/// \file
/// Attention over keys (B, S, …) for queries (B, L, …), or for a single one for each example, (B, …). A query for which
/// no key takes part gets zeros.

namespace reel::nn {

/// Masks of the keys that do not take part. Source: PyTorch's MultiheadAttention.
struct AttentionMasks {
  /// (L, S); or by head (B · heads, L, S), (B or 1, heads or 1, L, S): bool, true where a key takes no part for a
  /// query; or, in the queries' dtype, added to the scores. Undefined (default): none.
  Tensor attention_mask = {};
  /// (B, S), bool: true where a key is padding; for keys that are Packed, transpose(!keys.mask()). Undefined (default):
  /// none.
  Tensor key_padding_mask = {};
  /// Whether key j takes part only for queries i ≥ j. Default false.
  bool causal = false;
};

/// The keys and values that a MultiHeadAttention has computed for the steps of sequences so far, so that the next steps
/// need not compute them again. A new one, of no steps, for each layer and batch of sequences.
struct KeyValueCache {
  Tensor keys;    ///< (B, heads, S, size / heads); undefined before the first step
  Tensor values;  ///< (B, heads, S, size / heads); undefined before the first step

  /// The number S of steps that are kept.
  std::int64_t length() const { return keys.defined() ? keys.size(2) : 0; }
};

/// Options of MultiHeadAttention.
struct MultiHeadAttentionOptions {
  bool bias = true;  ///< whether there is a bias; default true
  /// The probability, in [0, 1], with which an attention weight becomes 0 while training. Default 0.
  double dropout = 0;
  std::int64_t key_size = 0,  ///< width of the keys; 0 (default): that of the queries
      value_size = 0;         ///< width of the values; 0 (default): that of the queries
  DType dtype = DType::f32;   ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Multi-head attention: concat(head_1 … head_n) W_O, head_i = softmax(Q_i K_iᵀ / √D) V_i, where Q_i, K_i and V_i are D
/// = size / heads columns each of query(q), key(k) and value(v). q: (B, L, size), k: (B, S, key_size), v: (B, S,
/// value_size) → (B, L, size); or all without B. Matrices are initialised by xavier_uniform, `output` uniform on
/// ±1/√size, biases with 0.
/// Source: Vaswani et al., Attention is all you need (2017); PyTorch's MultiheadAttention with batch_first.
struct MultiHeadAttention : Module {
  Linear query,   ///< (…, size) → (…, size)
      key,        ///< (…, key_size) → (…, size)
      value;      ///< (…, value_size) → (…, size)
  Linear output;  ///< (…, size) → (…, size)

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive and the heads divide the size; Error unless the dropout is in [0,
  /// 1].
  MultiHeadAttention(std::int64_t size, std::int64_t heads, MultiHeadAttentionOptions options = {},
                     Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive and the heads divide the size; Error unless the dropout is in [0, 1].
  MultiHeadAttention(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                     MultiHeadAttentionOptions options = {}, Location where = Location::here())
      : MultiHeadAttention(size, heads, options, where) {
    join(parent, name, where);
  }

  /// The attention of queries (B, L, size) over keys (B, S, key_size) with values (B, S, value_size) → (B, L, size), or
  /// all without B.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Tensor operator()(const Arg& queries, const Tensor& keys, const Tensor& values,
                    const AttentionMasks& masks = {}) const;
  /// The attention of a sequence x (B, L, size) over itself → (B, L, size), or both without B.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Tensor operator()(const Arg& x, const AttentionMasks& masks = {}) const;
  /// The causal attention of the next steps x (B, L, size) of sequences over themselves and the S steps in `cache`, to
  /// which their keys and values are appended → (B, L, size). Calls for one step after another give, but for rounding,
  /// what `operator()(x, {.causal = true})` gives for all of them. After an exception the cache is unchanged.
  ///
  ///     nn::KeyValueCache cache;
  ///     for (const Tensor& x : steps) shown.push_back(attention(x, cache));  // x: (B, 1, size)
  ///
  /// Throws: ShapeError unless x is (B, L, size) for the cache's B and heads; DTypeError for inputs that do not fit;
  /// Error if x is undefined.
  Tensor operator()(const Arg& x, KeyValueCache& cache) const;

  /// The attention weights of each head without dropout, (B, heads, L, S), or without B, for inspection: queries (B, L,
  /// size), keys (B, S, key_size).
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Tensor weights(const Arg& queries, const Tensor& keys, const AttentionMasks& masks = {}) const;

  /// The number of heads.
  std::int64_t heads() const { return heads_; }

 private:
  std::int64_t heads_;
  double dropout_;
};

/// The result of attention with returned weights.
struct Attended {
  Tensor context;  ///< (B, L, K) or (B, K): Σ_s weights_s keys_s
  Tensor weights;  ///< (B, L, S) or (B, S)
};

/// The tensors of a result, for hooks.
inline std::vector<Tensor*> tensors_of(Attended& result) { return {&result.context, &result.weights}; }

/// Options of BahdanauAttention.
struct AdditiveAttentionOptions {
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Additive attention: weights = softmax_s(v · tanh(q W_q + k_s W_k)): q: (B, L, Q) or (B, Q), k: (B, S, K). All
/// parameters are initialised by xavier_uniform.
/// Source: Bahdanau et al., Neural machine translation by jointly learning to align and translate (ICLR 2015).
struct BahdanauAttention : Module {
  Parameter W_q;  ///< (Q, size)
  Parameter W_k;  ///< (K, size)
  Parameter v;    ///< (size, 1)

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive.
  BahdanauAttention(std::int64_t query_size, std::int64_t key_size, std::int64_t size,
                    AdditiveAttentionOptions options = {}, Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive.
  BahdanauAttention(Module& parent, std::string_view name, std::int64_t query_size, std::int64_t key_size,
                    std::int64_t size, AdditiveAttentionOptions options = {}, Location where = Location::here())
      : BahdanauAttention(query_size, key_size, size, options, where) {
    join(parent, name, where);
  }

  /// The context and weights of queries (B, L, Q) or (B, Q) over keys (B, S, K). key_padding_mask: (B, S), bool, true
  /// where a key is padding; undefined: none.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Attended operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask = {}) const;
};

/// The score of a query q and a key k.
enum class LuongScore : std::uint8_t {
  dot,      ///< q · k
  general,  ///< q W k
  concat,   ///< v · tanh([q; k] W)
};

/// Options of LuongAttention.
struct LuongAttentionOptions {
  LuongScore score = LuongScore::general;  ///< default general
  /// The number of W's columns for `concat`; 0 (default): Q.
  std::int64_t size = 0;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// Attention by a score: weights = softmax_s(score(q, k_s)): q: (B, L, Q) or (B, Q), k: (B, S, K). All parameters are
/// initialised by xavier_uniform.
/// Source: Luong et al., Effective approaches to attention-based neural machine translation (EMNLP 2015), section 3.1.
struct LuongAttention : Module {
  Parameter W;  ///< (Q, K) for `general`, (Q + K, size) for `concat`; else undefined
  Parameter v;  ///< (size, 1) for `concat`

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive, and for `dot` unless Q is K.
  LuongAttention(std::int64_t query_size, std::int64_t key_size, LuongAttentionOptions options = {},
                 Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive, and for `dot` unless Q is K.
  LuongAttention(Module& parent, std::string_view name, std::int64_t query_size, std::int64_t key_size,
                 LuongAttentionOptions options = {}, Location where = Location::here())
      : LuongAttention(query_size, key_size, options, where) {
    join(parent, name, where);
  }

  /// The context and weights of queries (B, L, Q) or (B, Q) over keys (B, S, K). key_padding_mask: (B, S), bool, true
  /// where a key is padding; undefined: none.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Attended operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask = {}) const;

 private:
  std::int64_t query_size_, key_size_;
  LuongScore score_;
};

}  // namespace reel::nn
