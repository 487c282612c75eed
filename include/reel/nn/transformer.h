#pragma once

#include <reel/nn/attention.h>
#include <reel/nn/layer_norm.h>

namespace reel::nn {

enum class TransformerActivation : std::uint8_t { relu, gelu };

struct TransformerOptions {
  /// Width between the two linear layers.
  std::int64_t feed_forward = 2048;
  /// Of attention weights, between the two linear layers, and of what each part adds, while training.
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  /// x + part(norm(x)) in place of norm(x + part(x)).
  /// Source: Xiong et al., On layer normalization in the transformer architecture (ICML 2020).
  bool norm_first = false;
  /// Of the layer norms.
  double epsilon = 1e-5;
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// contract(act(expand(x))), where `expand` goes to a larger width and `contract` back.
struct FeedForward : Module {
  Linear expand, contract;

  FeedForward(Module& parent, std::string_view name, std::int64_t size, const TransformerOptions& options,
              Location where);

  Tensor operator()(const Arg& x) const;

 private:
  TransformerActivation activation_;
  double dropout_;
};

/// A layer of a Transformer's encoder: attention of a sequence to itself and a feed-forward net, each added to its input,
/// with layer norms: x (B, L, size) → (B, L, size), or both without B.
/// Source: Vaswani et al., Attention is all you need (2017); PyTorch's TransformerEncoderLayer with batch_first.
struct TransformerEncoderLayer : Module {
  MultiHeadAttention attention;
  LayerNorm attention_norm;
  FeedForward feed_forward;
  LayerNorm feed_forward_norm;

  /// Throws: as MultiHeadAttention; ShapeError unless all sizes are positive.
  TransformerEncoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options = {},
                          Location where = Location::here());
  TransformerEncoderLayer(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                          TransformerOptions options = {}, Location where = Location::here())
      : TransformerEncoderLayer(size, heads, options, where) {
    join(parent, name, where);
  }

  /// Throws: ShapeError, DTypeError for what does not fit.
  Tensor operator()(const Arg& x, const AttentionMasks& masks = {}) const;

 private:
  bool norm_first_;
  double dropout_;
};

/// A layer of a Transformer's decoder: attention of a sequence to itself, attention to the encoder's output, and a
/// feed-forward net, likewise: x (B, L, size) and memory (B, S, size) → (B, L, size), or all without B.
/// Source: as TransformerEncoderLayer; PyTorch's TransformerDecoderLayer with batch_first.
struct TransformerDecoderLayer : Module {
  MultiHeadAttention attention;
  LayerNorm attention_norm;
  MultiHeadAttention memory_attention;
  LayerNorm memory_norm;
  FeedForward feed_forward;
  LayerNorm feed_forward_norm;

  /// Throws: as TransformerEncoderLayer.
  TransformerDecoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options = {},
                          Location where = Location::here());
  TransformerDecoderLayer(Module& parent, std::string_view name, std::int64_t size, std::int64_t heads,
                          TransformerOptions options = {}, Location where = Location::here())
      : TransformerDecoderLayer(size, heads, options, where) {
    join(parent, name, where);
  }

  /// `masks` are of the sequence itself, causal for one that is made step by step; `memory_masks` of the memory.
  /// Throws: ShapeError, DTypeError for what does not fit.
  Tensor operator()(const Arg& x, const Tensor& memory, const AttentionMasks& masks = {},
                    const AttentionMasks& memory_masks = {}) const;

 private:
  bool norm_first_;
  double dropout_;
};

}  // namespace reel::nn
