#include <reel/nn/attention.h>

#include <limits>

#include <reel/ops.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr double of_excluded = -std::numeric_limits<double>::infinity();

template <class... Sizes>
void check_positive(const char* name, Location where, Sizes... sizes) {
  if (((sizes <= 0) || ...))
    fail<ShapeError>(name, where, "sizes must be positive, not {}", to_string(Shape{sizes...}));
}

// A mask for scores (B, …, S): true for keys that are no padding, with axes of size 1 in between.
Tensor real_keys(const char* name, const Tensor& padding, std::int64_t batch, std::int64_t keys, int axes_between) {
  if (padding.dtype() != DType::boolean || padding.shape() != Shape{batch, keys})
    fail<ShapeError>(name, {}, "the key padding mask {} is not ({}, {}) bool", describe(padding), batch, keys);
  Shape shape{batch};
  for (int i = 0; i < axes_between; ++i) shape.push_back(1);
  shape.push_back(keys);
  return reshape(!padding, shape);
}

}  // namespace

// Multi-head

namespace {

constexpr const char* heads_name = "MultiHeadAttention";

LinearOptions xavier(const MultiHeadAttentionOptions& options) {
  return {.bias = options.bias,
          .initialiser = xavier_uniform(),
          .bias_initialiser = constant(0),
          .dtype = options.dtype,
          .generator = options.generator};
}

// Returns the size. Throws unless it matches the options.
std::int64_t checked_size(std::int64_t size, std::int64_t heads, const MultiHeadAttentionOptions& options,
                          Location where) {
  if (size <= 0 || heads <= 0 || size % heads != 0)
    fail<ShapeError>(heads_name, where, "{} heads do not share out a size of {}", heads, size);
  if (options.key_size < 0 || options.value_size < 0)
    fail<ShapeError>(heads_name, where, "the sizes of keys and values, {} and {}, are not 0 or more", options.key_size,
                     options.value_size);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail<Error>(heads_name, where, "the dropout {} does not lie in [0, 1]", options.dropout);
  return size;
}

// (B, T, E) → (B, heads, T, E / heads).
Tensor by_head(const Tensor& x, std::int64_t heads) {
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
}

// A mask that broadcasts to scores (B, heads, L, S): bool, with true for keys that are attended to, or added to the
// scores; undefined if no key is masked.
Tensor joint_mask(const AttentionMasks& masks, const Shape& scores, DType dtype) {
  Tensor real, given = masks.attention_mask;
  if (masks.key_padding_mask.defined()) real = real_keys(heads_name, masks.key_padding_mask, scores[0], scores[3], 2);
  if (!given.defined()) return real;
  if (given.rank() == 3 && given.size(0) == scores[0] * scores[1])
    given = reshape(given, {scores[0], scores[1], given.size(1), given.size(2)});
  else if (given.rank() == 3)
    fail<ShapeError>(heads_name, {}, "the mask {} is not one for each of {} examples and {} heads", describe(given),
                     scores[0], scores[1]);
  if (given.dtype() == DType::boolean) {
    given = !given;
    return real.defined() ? mul(given, real) : given;
  }
  given = to_if_needed(given, dtype);
  return real.defined() ? where(real, given, of_excluded) : given;
}

// x as (B, length, width); a single example (length, width) gets an axis. Throws unless x has a batch axis exactly if
// the queries have.
Tensor in_batch(const Tensor& x, bool single) {
  if (!x.defined()) fail<Error>(heads_name, {}, "keys or values are an undefined tensor");
  if (x.rank() != (single ? 2 : 3))
    fail<ShapeError>(heads_name, {}, "takes queries, keys and values that are all ({}length, width), not {}",
                     single ? "" : "B, ", describe(x));
  return single ? unsqueeze(x, 0) : x;
}

// Queries and keys by head, and the mask of their scores.
struct Scored {
  Tensor q, k;
  AttentionOptions options;
};

Scored score(const MultiHeadAttention& layer, const Tensor& q, const Tensor& k, const AttentionMasks& masks) {
  const Tensor& mask = masks.attention_mask;
  if (mask.defined() && mask.dtype() != DType::boolean && mask.dtype() != q.dtype())
    fail<DTypeError>(heads_name, {}, "the mask {} is neither bool nor {}", describe(mask), name_of(q.dtype()));
  bool single = q.rank() == 2;
  Tensor padding = masks.key_padding_mask;
  if (single && padding.defined() && padding.rank() == 1) padding = unsqueeze(padding, 0);
  Scored scored{by_head(layer.query(in_batch(q, single)), layer.heads()),
                by_head(layer.key(in_batch(k, single)), layer.heads()),
                {}};
  Shape scores{scored.q.size(0), layer.heads(), scored.q.size(2), scored.k.size(2)};
  scored.options = {.mask = joint_mask({mask, padding}, scores, scored.q.dtype()), .causal = masks.causal};
  return scored;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t size, std::int64_t heads, MultiHeadAttentionOptions options,
                                       Location where)
    : query(*this, "query", checked_size(size, heads, options, where), size, xavier(options), where),
      key(*this, "key", options.key_size > 0 ? options.key_size : size, size, xavier(options), where),
      value(*this, "value", options.value_size > 0 ? options.value_size : size, size, xavier(options), where),
      output(*this, "output", size, size,
             {.bias = options.bias,
              .bias_initialiser = constant(0),
              .dtype = options.dtype,
              .generator = options.generator},
             where),
      heads_(heads),
      dropout_(options.dropout) {}

Tensor MultiHeadAttention::operator()(const Arg& queries, const Tensor& keys, const Tensor& values,
                                      const AttentionMasks& masks) const {
  const Tensor& given = tensor_of(heads_name, queries);
  return call(
      heads_name, {given, keys, values}, queries.location(), [&](const Tensor& q, const Tensor& k, const Tensor& v) {
        auto [by_query, by_key, attention] = score(*this, q, k, masks);
        bool single = q.rank() == 2;
        attention.dropout = is_training() ? dropout_ : 0;
        Tensor found =
            scaled_dot_product_attention(by_query, by_key, by_head(value(in_batch(v, single)), heads_), attention);
        Tensor joined = output(flatten(transpose(found, 1, 2), 2));
        return single ? squeeze(joined, 0) : joined;
      });
}

Tensor MultiHeadAttention::operator()(const Arg& x, KeyValueCache& cache) const {
  return call(heads_name, x, [&](const Tensor& x) {
    if (x.rank() != 3) fail<ShapeError>(heads_name, {}, "takes next steps (B, L, size), not {}", describe(x));
    KeyValueCache next{by_head(key(x), heads_), by_head(value(x), heads_)};
    std::int64_t past = cache.length(), steps = x.size(1);
    if (past > 0) {
      if (cache.keys.size(0) != x.size(0) || cache.keys.size(1) != heads_ || cache.keys.size(3) != next.keys.size(3))
        fail<ShapeError>(heads_name, {}, "next steps {} with {} heads do not continue those of a cache {}", describe(x),
                         heads_, describe(cache.keys));
      next = {concat({cache.keys, next.keys}, 2), concat({cache.values, next.values}, 2)};
    }
    AttentionOptions attention{.causal = past == 0, .dropout = is_training() ? dropout_ : 0};
    if (past > 0 && steps > 1)  // step i sees what is kept and the steps up to i
      attention.mask = tril(ones({steps, past + steps}, {.dtype = DType::boolean, .device = x.device()}), past);
    Tensor found = scaled_dot_product_attention(by_head(query(x), heads_), next.keys, next.values, attention);
    Tensor joined = output(flatten(transpose(found, 1, 2), 2));
    cache = std::move(next);
    return joined;
  });
}

Tensor MultiHeadAttention::weights(const Arg& queries, const Tensor& keys, const AttentionMasks& masks) const {
  return call(heads_name, {tensor_of(heads_name, queries), keys, Tensor()}, queries.location(),
              [&](const Tensor& q, const Tensor& k, const Tensor&) {
                auto [by_query, by_key, attention] = score(*this, q, k, masks);
                Tensor each_key = eye(by_key.size(2), {.dtype = by_key.dtype(), .device = by_key.device()});
                Tensor found = scaled_dot_product_attention(by_query, by_key, each_key, attention);
                return q.rank() == 2 ? squeeze(found, 0) : found;
              });
}

Tensor MultiHeadAttention::operator()(const Arg& x, const AttentionMasks& masks) const {
  const Tensor& both = tensor_of(heads_name, x);
  return (*this)(x, both, both, masks);
}

// Additive and multiplicative

namespace {

// scores_of(queries (B, L, Q)) → (B, L, S)
template <class Scores>
Attended attend(const char* name, Tensor queries, const Tensor& keys, const Tensor& padding, std::int64_t query_size,
                std::int64_t key_size, Scores scores_of) {
  bool single = queries.rank() == 2;
  if (!keys.defined()) fail<Error>(name, {}, "the keys are an undefined tensor");
  if (single) queries = unsqueeze(queries, 1);
  if (queries.rank() != 3 || keys.rank() != 3 || queries.size(2) != query_size || keys.size(2) != key_size ||
      queries.size(0) != keys.size(0))
    fail<ShapeError>(name, {}, "takes queries (B, {}) or (B, L, {}) with keys (B, S, {}), not {} with {}", query_size,
                     query_size, key_size, to_string(queries.shape()), to_string(keys.shape()));
  SoftmaxOptions options;
  if (padding.defined()) options.mask = real_keys(name, padding, keys.size(0), keys.size(1), 1);
  Tensor weights = softmax(scores_of(queries), -1, options);
  Tensor context = matmul(weights, keys);
  if (!single) return {std::move(context), std::move(weights)};
  return {squeeze(context, 1), squeeze(weights, 1)};
}

// v · tanh(q + k) for each pair of a query and a key.
Tensor additive_scores(const Tensor& queries, const Tensor& keys, const Tensor& v) {
  return squeeze(matmul(tanh(unsqueeze(queries, 2) + unsqueeze(keys, 1)), v), -1);
}

constexpr const char* bahdanau_name = "BahdanauAttention";
constexpr const char* luong_name = "LuongAttention";

template <class Options>
RandomOptions draw(const Options& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

}  // namespace

BahdanauAttention::BahdanauAttention(std::int64_t query_size, std::int64_t key_size, std::int64_t size,
                                     AdditiveAttentionOptions options, Location where)
    : W_q(*this, "W_q", (check_positive(bahdanau_name, where, query_size, key_size, size), Shape{query_size, size}),
          xavier_uniform(), draw(options), where),
      W_k(*this, "W_k", {key_size, size}, xavier_uniform(), draw(options), where),
      v(*this, "v", {size, 1}, xavier_uniform(), draw(options), where) {}

Attended BahdanauAttention::operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask) const {
  return call(bahdanau_name, {tensor_of(bahdanau_name, queries), keys}, queries.location(),
              [&](const Tensor& queries, const Tensor& keys) {
                return attend(
                    bahdanau_name, queries, keys, key_padding_mask, W_q.size(0), W_k.size(0),
                    [&](const Tensor& queries) { return additive_scores(matmul(queries, W_q), matmul(keys, W_k), v); });
              });
}

LuongAttention::LuongAttention(std::int64_t query_size, std::int64_t key_size, LuongAttentionOptions options,
                               Location where)
    : query_size_(query_size), key_size_(key_size), score_(options.score) {
  check_positive(luong_name, where, query_size, key_size);
  if (options.size < 0) fail<ShapeError>(luong_name, where, "the size {} is not 0 or more", options.size);
  std::int64_t size = options.size > 0 ? options.size : query_size;
  if (score_ == LuongScore::dot && query_size != key_size)
    fail<ShapeError>(luong_name, where, "queries of size {} have no dot product with keys of size {}", query_size,
                     key_size);
  if (score_ == LuongScore::general)
    W = Parameter(*this, "W", {query_size, key_size}, xavier_uniform(), draw(options), where);
  if (score_ != LuongScore::concat) return;
  W = Parameter(*this, "W", {query_size + key_size, size}, xavier_uniform(), draw(options), where);
  v = Parameter(*this, "v", {size, 1}, xavier_uniform(), draw(options), where);
}

Attended LuongAttention::operator()(const Arg& queries, const Tensor& keys, const Tensor& key_padding_mask) const {
  return call(luong_name, {tensor_of(luong_name, queries), keys}, queries.location(),
              [&](const Tensor& queries, const Tensor& keys) {
                return attend(luong_name, queries, keys, key_padding_mask, query_size_, key_size_,
                              [&](const Tensor& queries) {
                                if (score_ == LuongScore::dot) return matmul(queries, transpose(keys));
                                if (score_ == LuongScore::general) return matmul(matmul(queries, W), transpose(keys));
                                return additive_scores(matmul(queries, slice(W, 0, 0, query_size_)),
                                                       matmul(keys, slice(W, 0, query_size_)), v);
                              });
              });
}

}  // namespace reel::nn
