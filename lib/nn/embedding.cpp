#include <reel/nn/embedding.h>

#include <reel/ops/index.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

Embedding::Embedding(std::int64_t count, std::int64_t size, EmbeddingOptions options, Location where) {
  initialise(count, size, options, where);
}

Embedding::Embedding(Module& parent, std::string_view name, std::int64_t count, std::int64_t size,
                     EmbeddingOptions options, Location where)
    : Module(parent, name, where) {
  initialise(count, size, options, where);
}

void Embedding::initialise(std::int64_t count, std::int64_t size, const EmbeddingOptions& options, Location where) {
  if (count <= 0 || size <= 0)
    fail<ShapeError>("Embedding", where, "sizes must be positive, not count {}, size {}", count, size);
  row_gradient_ = options.row_gradient;
  table = parameter("table", {count, size}, normal(), {.dtype = options.dtype, .generator = options.generator}, where);
}

Tensor Embedding::operator()(const Arg& indices) const {
  CallerScope caller(indices.location());
  return embedding(table, indices, {.row_gradient = row_gradient_});
}

}  // namespace reel::nn
