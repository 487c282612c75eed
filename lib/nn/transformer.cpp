#include <reel/nn/transformer.h>

#include <functional>

#include <reel/ops/activation.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/random.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

MultiHeadAttentionOptions heads_of(const TransformerOptions& options) {
  return {.dropout = options.dropout, .dtype = options.dtype, .generator = options.generator};
}

LayerNormOptions norm_of(const TransformerOptions& options) {
  return {.epsilon = options.epsilon, .dtype = options.dtype};
}

Tensor dropped(const Tensor& x, double probability, const Module& module) {
  return module.is_training() && probability > 0 ? dropout(x, {.probability = probability}) : x;
}

// The residual sum of x and the result of a part of a layer.
template <class Part>
Tensor add_part(const Tensor& x, const LayerNorm& norm, bool norm_first, double probability, Part part) {
  if (norm_first) return x + dropped(part(norm(x)), probability, norm);
  return norm(x + dropped(part(x), probability, norm));
}

}  // namespace

FeedForward::FeedForward(Module& parent, std::string_view name, std::int64_t size, const TransformerOptions& options,
                         Location where)
    : expand(*this, "expand", size, options.feed_forward, {.dtype = options.dtype, .generator = options.generator},
             where),
      contract(*this, "contract", options.feed_forward, size, {.dtype = options.dtype, .generator = options.generator},
               where),
      activation_(options.activation),
      dropout_(options.dropout) {
  join(parent, name, where);
}

Tensor FeedForward::operator()(const Arg& x) const {
  return call("FeedForward", x, [&](const Tensor& x) {
    Tensor wide = expand(x);
    wide = activation_ == TransformerActivation::gelu ? gelu(wide) : relu(wide);
    return contract(dropped(wide, dropout_, *this));
  });
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options,
                                                 Location where)
    : attention(*this, "attention", size, heads, heads_of(options), where),
      attention_norm(*this, "attention_norm", {size}, norm_of(options), where),
      feed_forward(*this, "feed_forward", size, options, where),
      feed_forward_norm(*this, "feed_forward_norm", {size}, norm_of(options), where),
      norm_first_(options.norm_first),
      dropout_(options.dropout) {}

template <class Attend>
Tensor TransformerEncoderLayer::apply(const Tensor& x, Attend attend) const {
  Tensor seen = add_part(x, attention_norm, norm_first_, dropout_, attend);
  return add_part(seen, feed_forward_norm, norm_first_, dropout_, std::cref(feed_forward));
}

Tensor TransformerEncoderLayer::operator()(const Arg& x, const AttentionMasks& masks) const {
  return call("TransformerEncoderLayer", x,
              [&](const Tensor& x) { return apply(x, [&](const Tensor& x) { return attention(x, masks); }); });
}

Tensor TransformerEncoderLayer::operator()(const Arg& x, KeyValueCache& cache) const {
  return call("TransformerEncoderLayer", x,
              [&](const Tensor& x) { return apply(x, [&](const Tensor& x) { return attention(x, cache); }); });
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t size, std::int64_t heads, TransformerOptions options,
                                                 Location where)
    : attention(*this, "attention", size, heads, heads_of(options), where),
      attention_norm(*this, "attention_norm", {size}, norm_of(options), where),
      memory_attention(*this, "memory_attention", size, heads, heads_of(options), where),
      memory_norm(*this, "memory_norm", {size}, norm_of(options), where),
      feed_forward(*this, "feed_forward", size, options, where),
      feed_forward_norm(*this, "feed_forward_norm", {size}, norm_of(options), where),
      norm_first_(options.norm_first),
      dropout_(options.dropout) {}

template <class Attend>
Tensor TransformerDecoderLayer::apply(const Tensor& x, const Tensor& memory, const AttentionMasks& memory_masks,
                                      Attend attend) const {
  Tensor seen = add_part(x, attention_norm, norm_first_, dropout_, attend);
  seen = add_part(seen, memory_norm, norm_first_, dropout_,
                  [&](const Tensor& x) { return memory_attention(x, memory, memory, memory_masks); });
  return add_part(seen, feed_forward_norm, norm_first_, dropout_, std::cref(feed_forward));
}

namespace {

constexpr const char* decoder_name = "TransformerDecoderLayer";

}  // namespace

Tensor TransformerDecoderLayer::operator()(const Arg& x, const Tensor& memory, const AttentionMasks& masks,
                                           const AttentionMasks& memory_masks) const {
  return call(decoder_name, {tensor_of(decoder_name, x), memory}, x.location(),
              [&](const Tensor& x, const Tensor& memory) {
                return apply(x, memory, memory_masks, [&](const Tensor& x) { return attention(x, masks); });
              });
}

Tensor TransformerDecoderLayer::operator()(const Arg& x, const Tensor& memory, KeyValueCache& cache,
                                           const AttentionMasks& memory_masks) const {
  return call(decoder_name, {tensor_of(decoder_name, x), memory}, x.location(),
              [&](const Tensor& x, const Tensor& memory) {
                return apply(x, memory, memory_masks, [&](const Tensor& x) { return attention(x, cache); });
              });
}

}  // namespace reel::nn
