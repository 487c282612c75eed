#include <reel/ops/scan.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../kernels/pooling.h"
#include "../joining.h"
#include "../registry.h"
#include "ordered.h"

namespace reel {

using namespace detail;

namespace {

// a where the later element is at least as good, or NaN, else b.
Tensor chosen(const Tensor& keeps, const Tensor& all, const Tensor& later, const Tensor& earlier, int axis,
              std::int64_t step) {
  return concat({slice(all, axis, 0, step), where(keeps, later, earlier)}, axis);
}

// The index of the best element up to each one. Ranges that end there double in length with every step; a number is
// never as good as an earlier NaN.
Tensor best_indices(const Tensor& x, int axis, Tensor (*as_good)(const Arg& a, const Arg& b)) {
  std::int64_t size = x.body().dims[axis];
  Shape beside;
  for (int i = 0; i < x.rank(); ++i) beside.push_back(i == axis ? size : 1);
  Tensor order = arange(size, {.dtype = DType::i64, .device = x.device()});
  Tensor best = x, indices = copy(expand(reshape(order, beside), x.shape()));
  for (std::int64_t step = 1; step < size; step *= 2) {
    std::int64_t rest = size - step;
    Tensor later = slice(best, axis, step), earlier = slice(best, axis, 0, rest);
    Tensor keeps = logical_or(isnan(later), as_good(later, earlier));
    indices = chosen(keeps, indices, slice(indices, axis, step), slice(indices, axis, 0, rest), axis, step);
    best = chosen(keeps, best, later, earlier, axis, step);
  }
  return indices;
}

template <bool largest>
void run_kernel(Call& call) {
  kernels(call.output().device)
      .pooling->running_extreme(call.output(values_output), call.output(indices_output), call.input(0),
                                static_cast<int>(call.attributes<OrderAttributes>().axis), largest);
}

ValuesAndIndices cumulative(const OpInfo& op, bool largest, const Arg& x, int axis) {
  const Tensor& tensor = tensor_of(op.name, x);
  axis = check_axis(op.name, axis, tensor, x.location());
  if (kernels(tensor.device()).pooling->running_extreme)
    return invoke_ordered(op, tensor, tensor.shape(), {axis, largest}, x.location());
  OpScope caller(x.location(), op.name);
  Tensor indices;
  {
    NoRecord pause;
    indices = best_indices(tensor, axis, largest ? greater_equal : less_equal);
  }
  return {gather(tensor, axis, indices), indices};
}

}  // namespace

// cummax, cummin: y = the largest or smallest element up to each one;  dx = zeros, to which d is added at the indices

constexpr OpInfo cummax_op{
    .name = "cummax",
    .forward = run_kernel<true>,
    .gradient = accumulate_at_indices,
    .saves_output_for = {inputs({0})},
    .joining = by_other_axes,
};

constexpr OpInfo cummin_op{
    .name = "cummin",
    .forward = run_kernel<false>,
    .gradient = accumulate_at_indices,
    .saves_output_for = {inputs({0})},
    .joining = by_other_axes,
};

ValuesAndIndices cummax(const Arg& x, int axis) { return cumulative(cummax_op, true, x, axis); }
ValuesAndIndices cummin(const Arg& x, int axis) { return cumulative(cummin_op, false, x, axis); }

OpList detail::cumulative_extreme_ops() {
  static constexpr const OpInfo* ops[] = {&cummax_op, &cummin_op};
  return ops;
}

}  // namespace reel
