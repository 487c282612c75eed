#include <reel/nn/embedding.h>

#include <reel/ops/comparison.h>
#include <reel/ops/in_place.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char *embedding_name = "Embedding", *bag_name = "EmbeddingBag";

Shape checked(const char* name, std::int64_t count, std::int64_t size, Location where) {
  if (count <= 0 || size <= 0)
    fail<ShapeError>(name, where, "sizes must be positive, not count {}, size {}", count, size);
  return {count, size};
}

template <class Options>
Parameter table_of(Module& module, const Shape& shape, const Options& options, Location where) {
  return {module,
          "table",
          shape,
          options.initialiser ? options.initialiser : normal(),
          {.dtype = options.dtype, .generator = options.generator},
          where};
}

// True where an index is the padding index; negative indices count from the end.
Tensor is_padding(const Tensor& indices, std::int64_t padding, std::int64_t count) {
  return logical_or(indices == padding, indices == padding - count);
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t size, EmbeddingLayerOptions options, Location where)
    : table(table_of(*this, checked(embedding_name, count, size, where), options, where)),
      row_gradient_(options.row_gradient) {
  if (!options.padding_index) return;
  std::int64_t padding = *options.padding_index;
  if (padding < -count || padding >= count)
    fail<IndexError>(embedding_name, where, "the padding index {} is none of {} symbols", padding, count);
  padding_index_ = padding < 0 ? padding + count : padding;
  NoRecord pause;
  fill_(select(table, 0, *padding_index_), 0);
}

Tensor Embedding::operator()(const Arg& indices) const {
  return call(embedding_name, indices, [&](const Tensor& indices) {
    Tensor rows = embedding(table, indices, {.row_gradient = row_gradient_});
    if (!padding_index_) return rows;
    return where(unsqueeze(is_padding(indices, *padding_index_, table.size(0)), -1), stop_gradient(rows), rows);
  });
}

EmbeddingBag::EmbeddingBag(std::int64_t count, std::int64_t size, EmbeddingBagLayerOptions options, Location where)
    : table(table_of(*this, checked(bag_name, count, size, where), options, where)),
      mode_(options.mode),
      row_gradient_(options.row_gradient) {}

Tensor EmbeddingBag::operator()(const Arg& indices, const Tensor& offsets, const Tensor& per_sample_weights) const {
  return call(bag_name, indices, [&](const Tensor& indices) {
    return embedding_bag(
        table, indices,
        {.mode = mode_, .offsets = offsets, .per_sample_weights = per_sample_weights, .row_gradient = row_gradient_});
  });
}

}  // namespace reel::nn
