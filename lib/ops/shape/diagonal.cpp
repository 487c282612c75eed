#include <reel/ops/shape.h>

#include <algorithm>
#include <limits>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../index/places.h"
#include "../joining.h"
#include "../registry.h"

namespace reel {

using namespace detail;

Tensor detail::diagonal_view(const Tensor& x, std::int64_t diagonal, Location where) {
  const Body& body = x.body();
  std::int64_t rows = body.dims[0], columns = body.dims[1];
  bool exists = diagonal > -rows && diagonal < columns;
  std::int64_t row = exists && diagonal < 0 ? -diagonal : 0, column = exists && diagonal > 0 ? diagonal : 0;
  std::int64_t count = exists ? std::min(rows - row, columns - column) : 0;
  return view_of(x, {count}, {body.strides[0] + body.strides[1]}, row * body.strides[0] + column * body.strides[1],
                 where);
}

// band: y = x where low <= column − row <= high, else 0;  dx = d there, else 0

namespace {

struct BandAttributes {
  std::int64_t low, high;
};

constexpr OpInfo band_op{
    .name = "band",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          const auto& band = call.attributes<BandAttributes>();
          kernels(call.output().device).band(call.output(), call.input(0), band.low, band.high);
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          g.accumulate(0, invoke(*g.op(), {&d}, {d.body(), d.dtype()}, g.where(), g.attribute_bytes()));
        },
    .joining = by_matrices,
};

Tensor within_band(const char* op, const Arg& x, const BandAttributes& band) {
  const Tensor& tensor = tensor_of(op, x);
  if (tensor.rank() < 2) fail<ShapeError>(op, x.location(), "takes a matrix, or several, not {}", describe(tensor));
  return invoke(band_op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location(), bytes_of(band));
}

}  // namespace

Tensor tril(const Arg& x, std::int64_t diagonal) {
  return within_band("tril", x, {std::numeric_limits<std::int64_t>::min(), diagonal});
}

Tensor triu(const Arg& x, std::int64_t diagonal) {
  return within_band("triu", x, {diagonal, std::numeric_limits<std::int64_t>::max()});
}

// diagonal: y = a diagonal of x;  dx = zeros with d on it

namespace {

struct DiagonalAttributes {
  std::int64_t diagonal;
  Shape shape;  // of the matrix
};

Tensor on_diagonal(const Tensor& x, const DiagonalAttributes& at, Location where);

}  // namespace

constexpr OpInfo diagonal_op{
    .name = "diag",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          call.outputs[0] = diagonal_view(*call.inputs[0], call.attributes<DiagonalAttributes>().diagonal, call.where);
        },
    .gradient =
        [](Gradient& g) { g.accumulate(0, on_diagonal(g.output(), g.attributes<DiagonalAttributes>(), g.where())); },
};

// diagonal matrix: y = zeros with x on a diagonal;  dx = d's diagonal

constexpr OpInfo diagonal_matrix_op{
    .name = "diag",
    .arity = 1,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          Tensor place = diagonal_view(call.outputs[0], call.attributes<DiagonalAttributes>().diagonal, call.where);
          table.copy(place.body(), call.input(0));
        },
    .gradient =
        [](Gradient& g) { g.accumulate(0, invoke_view(diagonal_op, g.output(), g.where(), g.attribute_bytes())); },
};

namespace {

Tensor on_diagonal(const Tensor& x, const DiagonalAttributes& at, Location where) {
  return invoke(diagonal_matrix_op, {&x}, {at.shape, x.dtype(), x.device()}, where, bytes_of(at));
}

}  // namespace

Tensor diag(const Arg& x, std::int64_t diagonal) {
  const Tensor& tensor = tensor_of("diag", x);
  if (tensor.rank() != 1 && tensor.rank() != 2)
    fail<ShapeError>("diag", x.location(), "takes a vector or a matrix, not {}", describe(tensor));
  DiagonalAttributes attributes{diagonal, tensor.shape()};
  if (tensor.rank() == 2) return invoke_view(diagonal_op, tensor, x.location(), bytes_of(attributes));
  std::int64_t size, away = diagonal < 0 ? diagonal : -diagonal;
  if (__builtin_sub_overflow(tensor.numel(), away, &size))
    fail<ShapeError>("diag", x.location(), "a matrix with {} on its diagonal {} is larger than any memory",
                     describe(tensor), diagonal);
  attributes.shape = {size, size};
  return on_diagonal(tensor, attributes, x.location());
}

std::span<const RegisteredOp> detail::diagonal_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "diag", .info = &diagonal_op},
      {.name = "diagonal_matrix", .info = &diagonal_matrix_op, .internal = true},
      {.name = "tril", .info = &band_op},
      {.name = "triu", .info = &band_op},
  };
  return ops;
}

}  // namespace reel
