#include "row_gradient.h"

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../dispatch/invoke.h"
#include "../kernels/kernel_table.h"
#include "../kernels/sparse.h"
#include "../ops/if_needed.h"
#include "../ops/registry.h"

namespace reel::detail {
namespace {

struct RowCount {
  std::int64_t rows;
};

const SparseKernels& sparse_kernels(const Call& call) { return *kernels(call.output().device).sparse; }

}  // namespace

// The permutation that sorts the indices by row, and the number of different rows.

constexpr OpInfo order_rows_op{
    .name = "order_rows",
    .forward =
        [](Call& call) {
          sparse_kernels(call).order_rows(call.output(0), call.output(1), call.input(0),
                                          call.attributes<RowCount>().rows);
        },
    .internal = true,
};

// The different rows, ascending, and the sum of the values of each.

constexpr OpInfo segment_sum_rows_op{
    .name = "segment_sum_rows",
    .forward =
        [](Call& call) {
          sparse_kernels(call).segment_sum_rows(call.output(0), call.output(1), call.input(0), call.input(1),
                                                call.input(2), call.attributes<RowCount>().rows);
        },
    .internal = true,
};

RowGradient combined(const Tensor& indices, const Tensor& values, std::int64_t count) {
  Tensor at = contiguous_if_needed(indices), given = contiguous_if_needed(values), found[2], result[2];
  RowCount rows{count};
  Shape length{at.numel()}, single;
  OutputSpec places[] = {{length, DType::i64, at.device()}, {single, DType::i64, at.device()}};
  const Tensor* listed[] = {&at};
  Call order{order_rows_op, listed, bytes_of(rows), places, found, {}};
  invoke(order);
  Shape distinct{found[1].item<std::int64_t>()}, shape = given.shape();
  shape[0] = distinct[0];
  OutputSpec sums[] = {{distinct, DType::i64, at.device()}, {shape, given.dtype(), given.device()}};
  const Tensor* inputs[] = {&given, &at, &found[0]};
  Call sum{segment_sum_rows_op, inputs, bytes_of(rows), sums, result, {}};
  invoke(sum);
  return {std::move(result[0]), std::move(result[1])};
}

RowGradient combined(const RowGradient& a, const RowGradient& b, std::int64_t count) {
  return combined(concat({a.rows, b.rows}), concat({a.values, b.values}), count);
}

Tensor with_rows(const Tensor& total, const Tensor& indices, const Tensor& values) {
  return index_add(total, 0, indices, to_if_needed(values, total.dtype()));
}

Tensor dense(const RowGradient& gradient, const Shape& shape) {
  Tensor nothing = zeros(shape, {.dtype = gradient.values.dtype(), .device = gradient.values.device()});
  return with_rows(nothing, gradient.rows, gradient.values);
}

OpList row_gradient_ops() {
  static constexpr const OpInfo* ops[] = {&order_rows_op, &segment_sum_rows_op};
  return ops;
}

}  // namespace reel::detail
