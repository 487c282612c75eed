#include <reel/ops/index.h>

#include <reel/ops/create.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

void check_index_dtype(const char* op, const Tensor& index, Location where) {
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    fail<DTypeError>(op, where, "indices are i32 or i64, not {}; convert them with to(index, i64)", describe(index));
}

[[noreturn]] void fail_range(const Call& call, std::int64_t bad, int axis) {
  fail<IndexError>(call.op.name, call.where, "index {} is out of range for axis {} of {}", bad, axis,
                   describe(*call.inputs[0]));
}

// `index` must have x's rank, and off the axis sizes up to x's.
void check_index_shape(const char* op, const Tensor& x, const Tensor& index, int axis, Location where) {
  bool fits = index.rank() == x.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.body().dims[i] <= x.body().dims[i];
  if (!fits)
    fail<ShapeError>(op, where,
                     "the index {} does not fit x {}: ranks must agree, and no size but that of axis {} may "
                     "be larger",
                     to_string(index.shape()), to_string(x.shape()), axis);
}

}  // namespace

// gather: y[…, j, …] = x[…, index[…, j, …], …];  dx = zeros with d added at the index

constexpr OpInfo gather_op{
    .name = "gather",
    .arity = 2,
    .batching = Batching::gather,
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          std::int64_t bad;
          if (!kernels(call.output().device).gather(call.output(), call.input(0), call.input(1), axis, bad))
            fail_range(call, bad, axis);
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          Tensor nothing = zeros(g.input_shape(0), {.dtype = d.dtype(), .device = d.device()});
          int axis = static_cast<int>(g.attributes<AxisAttributes>().axis);
          g.give(0, scatter_add(nothing, axis, g.saved_input(1), d));
        },
    .saves_input_for = {0, inputs({0})},
};

Tensor gather(const Arg& x, int axis, const Arg& index) {
  const Tensor &from = tensor_of("gather", x), &at = tensor_of("gather", index);
  Location where = x.location();
  axis = check_axis("gather", axis, from, where);
  check_index_dtype("gather", at, where);
  check_index_shape("gather", from, at, axis, where);
  check_same_device("gather", from, at, where);
  return invoke(gather_op, {&from, &at}, {at.body(), from.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

// scatter_add: y = x with u added at the index;  dx = d,  du = d gathered there

constexpr OpInfo scatter_add_op{
    .name = "scatter_add",
    .arity = 3,
    .batching = Batching::loop,
    .forward =
        [](Call& call) {
          int axis = static_cast<int>(call.attributes<AxisAttributes>().axis);
          const KernelTable& table = kernels(call.output().device);
          std::int64_t bad;
          if (!table.indices_within(call.input(1), call.output().dims[axis], bad)) fail_range(call, bad, axis);
          table.copy(call.output(), call.input(0));
          table.scatter_add(call.output(), call.input(2), call.input(1), axis);
        },
    .gradient =
        [](Gradient& g) {
          g.give(0, g.output());
          if (g.wants(2))
            g.give(2, gather(g.output(), static_cast<int>(g.attributes<AxisAttributes>().axis), g.saved_input(1)));
        },
    .saves_input_for = {0, inputs({2})},
};

Tensor scatter_add(const Arg& x, int axis, const Arg& index, const Arg& updates) {
  const char* name = scatter_add_op.name;
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, index), &from = tensor_of(name, updates);
  Location where = x.location();
  axis = check_axis(name, axis, to, where);
  check_index_dtype(name, at, where);
  check_index_shape(name, to, at, axis, where);
  if (from.shape() != at.shape())
    fail<ShapeError>(name, where, "the updates {} do not have the index's shape {}", to_string(from.shape()),
                     to_string(at.shape()));
  if (from.dtype() != to.dtype())
    fail<DTypeError>(name, where, "the updates {} do not have x's dtype {}", describe(from), name_of(to.dtype()));
  check_same_device(name, to, at, where);
  check_same_device(name, to, from, where);
  return invoke(scatter_add_op, {&to, &at, &from}, {to.body(), to.dtype()}, where, bytes_of(AxisAttributes{axis}));
}

// embedding: y = rows of a table;  dtable = zeros with the rows of d added

namespace {

struct RowsAttributes {
  std::int64_t rows;
};

}  // namespace

// z = zeros (rows, D) with the rows of d added at the indices;  dd = e's rows

constexpr OpInfo embedding_gradient_op{
    .name = "embedding_gradient",
    .arity = 2,
    .batching = Batching::gather,
    .forward =
        [](Call& call) {
          const KernelTable& table = kernels(call.output().device);
          table.fill(call.output(), 0, 0);
          table.embedding_gradient(call.output(), call.input(0), call.input(1));
        },
    .gradient = [](Gradient& g) { g.give(0, embedding(g.output(), g.saved_input(1))); },
    .saves_input_for = {0, inputs({0})},
};

constexpr OpInfo embedding_op{
    .name = "embedding",
    .arity = 2,
    .batching = Batching::gather,
    .forward =
        [](Call& call) {
          std::int64_t bad;
          if (!kernels(call.output().device).embedding(call.output(), call.input(0), call.input(1), bad))
            fail_range(call, bad, 0);
        },
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          g.give(0, invoke(embedding_gradient_op, {&d, &g.saved_input(1)}, {g.input_shape(0), d.dtype(), d.device()},
                           g.where()));
        },
    .saves_input_for = {0, inputs({0})},
};

Tensor embedding(const Arg& table, const Arg& indices) {
  const Tensor &from = tensor_of("embedding", table), &at = tensor_of("embedding", indices);
  Location where = table.location();
  if (from.rank() != 2) fail<ShapeError>("embedding", where, "the table {} is not a matrix of rows", describe(from));
  check_index_dtype("embedding", at, where);
  check_same_device("embedding", from, at, where);
  if (at.rank() == max_rank)
    fail<ShapeError>("embedding", where, "the indices {} have 8 axes already, the most there can be",
                     to_string(at.shape()));
  Shape shape = at.shape();
  shape.push_back(from.body().dims[1]);
  return invoke(embedding_op, {&from, &at}, {shape, from.dtype(), from.device()}, where);
}

std::span<const RegisteredOp> detail::index_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "gather", .info = &gather_op},
      {.name = "scatter_add", .info = &scatter_add_op},
      {.name = "embedding", .info = &embedding_op},
      {.name = "embedding_gradient", .info = &embedding_gradient_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
