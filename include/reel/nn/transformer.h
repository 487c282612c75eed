#pragma once

#include <reel/nn/attention.h>
#include <reel/nn/layer_norm.h>

namespace reel::nn {

/// The function between the two linear layers of a feed-forward net.
enum class TransformerActivation : std::uint8_t { relu, gelu };

/// Options of TransformerEncoderLayer and TransformerDecoderLayer.
struct TransformerOptions {
  /// The width between the two linear layers. Default 2048.
  std::int64_t feed_forward = 2048;
  /// The probability, in [0, 1], of dropout of attention weights, between the two linear layers, and of the result of
  /// each part, while training. Default 0.1.
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;  ///< default relu
  /// Whether a part is x + part(norm(x)) instead of norm(x + part(x)). Default false.
  /// Source: Xiong et al., On layer normalization in the transformer architecture (ICML 2020).
  bool norm_first = false;
  /// ε of the layer norms; at least 0. Default 10⁻⁵.
  double epsilon = 1e-5;
  DType dtype = DType::f32;  ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// A feed-forward net contract(act(expand(x))), where `expand` maps to a larger width and `contract` back.
struct FeedForward : Module {
  Linear expand,  ///< (…, size) → (…, feed_forward)
      contract;   ///< (…, feed_forward) → (…, size)

  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive.
  FeedForward(Module& parent, std::string_view name, std::int64_t size, const TransformerOptions& options,
              Location where);

  /// The net of x (…, size), with dropout while training.
  /// Throws: ShapeError unless x ends in an axis of that size; Error if x is undefined.
  Tensor operator()(const Arg& x) const;

 private:
  TransformerActivation activation_;
  double dropout_;
};

/// A layer of a Transformer's encoder: attention of a sequence to itself and a feed-forward net, each added to its
/// input, with layer norms: x (B, L, size) → (B, L, size), or both without B.
/// Source: Vaswani et al., Attention is all you need (2017); PyTorch's TransformerEncoderLayer with batch_first.
struct TransformerEncoderLayer : Module {
  MultiHeadAttention attention;  ///< of the sequence to itself
  LayerNorm attention_norm;      ///< of the part of `attention`
  FeedForward feed_forward;      ///< the feed-forward net
  LayerNorm feed_forward_norm;   ///< of the part of `feed_forward`

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive and the heads divide the size; Error unless the dropout is in [0,
  /// 1].
  TransformerEncoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options = {},
                          Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive and the heads divide the size; Error unless the dropout is in [0, 1].
  TransformerEncoderLayer(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                          TransformerOptions options = {}, Location where = Location::here())
      : TransformerEncoderLayer(size, heads, options, where) {
    join(parent, name, where);
  }

  /// The layer of x (B, L, size) → (B, L, size), or both without B.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Tensor operator()(const Arg& x, const AttentionMasks& masks = {}) const;
  /// The layer of the next steps x (B, L, size) of sequences, each of which sees itself, the steps before it in x, and
  /// those in `cache`, to which the keys and values of x are appended → (B, L, size). Calls for one step after another
  /// give, but for rounding, what a causal mask gives for all of them.
  /// Throws: ShapeError unless x is (B, L, size) for the cache's B; DTypeError for inputs that do not fit; Error if x is
  /// undefined.
  Tensor operator()(const Arg& x, KeyValueCache& cache) const;

 private:
  // The layer, with the attention of the sequence to itself as a function.
  template <class Attend>
  Tensor apply(const Tensor& x, Attend attend) const;

  bool norm_first_;
  double dropout_;
};

/// A layer of a Transformer's decoder: attention of a sequence to itself, attention to the encoder's output, and a
/// feed-forward net, each added to its input, with layer norms: x (B, L, size) and memory (B, S, size) → (B, L, size),
/// or all without B.
/// Source: Vaswani et al., Attention is all you need (2017); PyTorch's TransformerDecoderLayer with batch_first.
struct TransformerDecoderLayer : Module {
  MultiHeadAttention attention;         ///< of the sequence to itself
  LayerNorm attention_norm;             ///< of the part of `attention`
  MultiHeadAttention memory_attention;  ///< to the encoder's output
  LayerNorm memory_norm;                ///< of the part of `memory_attention`
  FeedForward feed_forward;             ///< the feed-forward net
  LayerNorm feed_forward_norm;          ///< of the part of `feed_forward`

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive and the heads divide the size; Error unless the dropout is in [0,
  /// 1].
  TransformerDecoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options = {},
                          Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive and the heads divide the size; Error unless the dropout is in [0, 1].
  TransformerDecoderLayer(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                          TransformerOptions options = {}, Location where = Location::here())
      : TransformerDecoderLayer(size, heads, options, where) {
    join(parent, name, where);
  }

  /// The layer of x (B, L, size) and the memory (B, S, size) → (B, L, size), or all without B. `masks` are those of the
  /// sequence itself, causal for one that is generated step by step; `memory_masks` those of the memory.
  /// Throws: ShapeError or DTypeError for inputs or masks that do not fit; Error for an undefined one.
  Tensor operator()(const Arg& x, const Tensor& memory, const AttentionMasks& masks = {},
                    const AttentionMasks& memory_masks = {}) const;
  /// The layer of the next steps x (B, L, size) of sequences with the memory (B, S, size): each sees itself, the steps
  /// before it in x, and those in `cache`, to which the keys and values of x are appended → (B, L, size). Calls for one
  /// step after another give, but for rounding, what a causal mask gives for all of them. `memory_masks` are those of
  /// the memory, whose keys and values each call computes.
  /// Throws: ShapeError unless x is (B, L, size) for the cache's B; ShapeError or DTypeError for inputs or masks that do
  /// not fit; Error for an undefined one.
  Tensor operator()(const Arg& x, const Tensor& memory, KeyValueCache& cache,
                    const AttentionMasks& memory_masks = {}) const;

 private:
  // The layer, with the attention of the sequence to itself as a function.
  template <class Attend>
  Tensor apply(const Tensor& x, const Tensor& memory, const AttentionMasks& memory_masks, Attend attend) const;

  bool norm_first_;
  double dropout_;
};

}  // namespace reel::nn
