#include <reel/nn/embedding.h>

#include <reel/ops/index.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* embedding_name = "Embedding";

Shape checked(std::int64_t count, std::int64_t size, Location where) {
  if (count <= 0 || size <= 0)
    fail<ShapeError>(embedding_name, where, "sizes must be positive, not count {}, size {}", count, size);
  return {count, size};
}

}  // namespace

Embedding::Embedding(std::int64_t count, std::int64_t size, EmbeddingOptions options, Location where)
    : table(*this, "table", checked(count, size, where), normal(),
            {.dtype = options.dtype, .generator = options.generator}, where),
      row_gradient_(options.row_gradient) {}

Tensor Embedding::operator()(const Arg& indices) const {
  return call(embedding_name, indices,
              [&](const Tensor& indices) { return embedding(table, indices, {.row_gradient = row_gradient_}); });
}

}  // namespace reel::nn
