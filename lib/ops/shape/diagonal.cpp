#include <reel/ops/reduce.h>
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
#include "attributes.h"

namespace reel {

using namespace detail;

Tensor detail::diagonal_view(const Tensor& x, std::int64_t diagonal, Location where) {
  const Body& body = x.body();
  int first = body.rank - 2, second = body.rank - 1;
  std::int64_t rows = body.dims[first], columns = body.dims[second];
  bool exists = diagonal > -rows && diagonal < columns;
  std::int64_t row = exists && diagonal < 0 ? -diagonal : 0, column = exists && diagonal > 0 ? diagonal : 0;
  std::int64_t count = exists ? std::min(rows - row, columns - column) : 0;
  Shape shape, strides;
  for (int axis = 0; axis < first; ++axis) {
    shape.push_back(body.dims[axis]);
    strides.push_back(body.strides[axis]);
  }
  shape.push_back(count);
  strides.push_back(body.strides[first] + body.strides[second]);
  std::int64_t offset = row * body.strides[first] + column * body.strides[second];
  return view_of(x, shape, strides, shape.numel() == 0 ? 0 : offset, where);
}

// band: y = x where low <= column − row <= high, else 0;  dx = d there, else 0

namespace {

constexpr OpInfo band_op{
    .name = "band",
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
    .internal = true,
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

Tensor on_diagonal(const Tensor& x, const DiagonalAttributes& at, Location where);

}  // namespace

constexpr OpInfo diagonal_op{
    .name = "diag",
    .forward =
        [](Call& call) {
          call.outputs[0] = diagonal_view(*call.inputs[0], call.attributes<DiagonalAttributes>().diagonal, call.where);
        },
    .gradient =
        [](Gradient& g) { g.accumulate(0, on_diagonal(g.output(), g.attributes<DiagonalAttributes>(), g.where())); },
    .joining = runs_alone,
};

// diagonal matrix: y = zeros with x on a diagonal;  dx = d's diagonal

constexpr OpInfo diagonal_matrix_op{
    .name = "diag",
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          Tensor place = diagonal_view(call.outputs[0], call.attributes<DiagonalAttributes>().diagonal, call.where);
          table.copy(place.body(), call.input(0));
        },
    .gradient =
        [](Gradient& g) { g.accumulate(0, invoke_view(diagonal_op, g.output(), g.where(), g.attribute_bytes())); },
    .internal = true,
};

namespace {

Tensor on_diagonal(const Tensor& x, const DiagonalAttributes& at, Location where) {
  return invoke(diagonal_matrix_op, {&x}, {at.shape, x.dtype(), x.device()}, where, bytes_of(at));
}

}  // namespace

namespace {

// The size of a square matrix with `count` elements on a diagonal.
std::int64_t square_size(const char* op, const Tensor& x, std::int64_t count, std::int64_t diagonal, Location where) {
  std::int64_t size, away = diagonal < 0 ? diagonal : -diagonal;
  if (__builtin_sub_overflow(count, away, &size))
    fail<ShapeError>(op, where, "a matrix with {} on its diagonal {} is larger than any memory", describe(x), diagonal);
  return size;
}

}  // namespace

Tensor diag(const Arg& x, std::int64_t diagonal) {
  const Tensor& tensor = tensor_of("diag", x);
  if (tensor.rank() != 1 && tensor.rank() != 2)
    fail<ShapeError>("diag", x.location(), "takes a vector or a matrix, not {}", describe(tensor));
  DiagonalAttributes attributes{diagonal, tensor.shape()};
  if (tensor.rank() == 2) return invoke_view(diagonal_op, tensor, x.location(), bytes_of(attributes));
  std::int64_t size = square_size("diag", tensor, tensor.numel(), diagonal, x.location());
  attributes.shape = {size, size};
  return on_diagonal(tensor, attributes, x.location());
}

namespace {

struct TwoAxes {
  int first, second;
};

// Two different axes of a tensor of `rank` axes, counted from the front.
TwoAxes two_axes(const char* op, const DiagonalAxes& axes, int rank, Location where) {
  auto counted = [&](int axis) {
    if (axis < -rank || axis >= rank) fail<ShapeError>(op, where, "axis {} does not exist among {} axes", axis, rank);
    return axis < 0 ? axis + rank : axis;
  };
  TwoAxes found{counted(axes.first), counted(axes.second)};
  if (found.first == found.second)
    fail<ShapeError>(op, where, "axes {} and {} of {} are the same one", axes.first, axes.second, rank);
  return found;
}

// The axes of a tensor, those of the matrices last.
Shape matrices_last(const TwoAxes& axes, int rank) {
  Shape order;
  for (int axis = 0; axis < rank; ++axis)
    if (axis != axes.first && axis != axes.second) order.push_back(axis);
  order.push_back(axes.first);
  order.push_back(axes.second);
  return order;
}

}  // namespace

Tensor diagonal(const Arg& x, DiagonalAxes options) {
  const char* name = "diagonal";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  if (tensor.rank() < 2) fail<ShapeError>(name, where, "takes a matrix, or several, not {}", describe(tensor));
  Shape order = matrices_last(two_axes(name, options, tensor.rank(), where), tensor.rank());
  OpScope caller(where, name);
  Tensor matrices = permute(tensor, order);
  return invoke_view(diagonal_op, matrices, where, bytes_of(DiagonalAttributes{options.diagonal, matrices.shape()}));
}

Tensor diag_embed(const Arg& x, DiagonalAxes options) {
  const char* name = "diag_embed";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  int rank = tensor.rank() + 1;
  if (rank == 1 || rank > max_rank)
    fail<ShapeError>(name, where, "takes one to {} axes, not {}", max_rank - 1, describe(tensor));
  TwoAxes axes = two_axes(name, options, rank, where);
  OpScope caller(where, name);
  std::int64_t size = square_size(name, tensor, tensor.size(-1), options.diagonal, where);
  Shape shape = tensor.shape();
  shape[-1] = size;
  shape.push_back(size);
  Tensor matrices = on_diagonal(tensor, {options.diagonal, shape}, where);
  Shape order = matrices_last(axes, rank), inverse = order;
  for (int i = 0; i < rank; ++i) inverse[static_cast<int>(order[i])] = i;
  return axes.first == rank - 2 && axes.second == rank - 1 ? matrices : permute(matrices, inverse);
}

Tensor trace(const Arg& x) {
  const Tensor& tensor = tensor_of("trace", x);
  if (tensor.rank() < 2)
    fail<ShapeError>("trace", x.location(), "takes a matrix, or several, not {}", describe(tensor));
  OpScope caller(x.location(), "trace");
  return sum(diagonal(tensor), -1);
}

OpList detail::diagonal_ops() {
  static constexpr const OpInfo* ops[] = {&diagonal_op, &diagonal_matrix_op, &band_op};
  return ops;
}

}  // namespace reel
