#include <reel/ops/statistics.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include <algorithm>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"
#include "attributes.h"
#include "reduction.h"

namespace reel {

using namespace detail;

namespace {

template <bool root>
void variance_forward(Call& call) {
  double divisor = call.attributes<VarianceAttributes>().divisor;
  kernels(call.output().device).variance(call.output(), call.input(0), divisor, root);
}

// x − mean(x). The mean of the difference, the rounding error of a large mean, is subtracted too.
Tensor centred(Tensor x, const Shape& shape) {
  double count = static_cast<double>(x.numel()) / static_cast<double>(std::max<std::int64_t>(shape.numel(), 1));
  for (int pass = 0; pass < 2; ++pass) x = x - sum_to_if_needed(x, shape) / count;
  return x;
}

}  // namespace

// y = Σ (x − mean x)² / c;  dx = 2 d (x − mean x) / c

constexpr OpInfo var_op{
    .name = "var",
    .forward = variance_forward<false>,
    .gradient =
        [](Gradient& g) {
          Tensor x = widened(g.saved_input(0)), d = widened(g.output());
          double divisor = g.attributes<VarianceAttributes>().divisor;
          g.accumulate(0, to_if_needed(d * (2 / divisor) * centred(x, d.shape()), g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_kept_axes,
};

// y = √(Σ (x − mean x)² / c);  dx = d (x − mean x) / (c y), 0 where y = 0

constexpr OpInfo std_op{
    .name = "std",
    .forward = variance_forward<true>,
    .gradient =
        [](Gradient& g) {
          Tensor x = widened(g.saved_input(0)), y = widened(g.saved_output()), d = widened(g.output());
          double divisor = g.attributes<VarianceAttributes>().divisor;
          Tensor constant = y == 0.0;
          // The deviation is divided first: d / y overflows if y is tiny.
          Tensor share = centred(x, d.shape()) / where(constant, 1.0, y);
          g.accumulate(0, to_if_needed(share * (where(constant, 0.0, d) / divisor), g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_kept_axes,
};

namespace {

Tensor variance_over(const OpInfo& op, const Arg& x, const Axes& axes, VarianceOptions options) {
  const Tensor& tensor = tensor_of(op.name, x);
  check_floating(op.name, tensor, x.location());
  AxisSet set = axis_set(op.name, tensor, axes, x.location());
  VarianceAttributes attributes{std::max(count_along(tensor, set) - options.correction, 0.0)};
  return reduce_to_kept(op, tensor, set, tensor.dtype(), options.keepdims, x.location(), bytes_of(attributes));
}

}  // namespace

template <int>
Tensor var(const Arg& x, const Axes& axes, VarianceOptions options) {
  return variance_over(var_op, x, axes, options);
}
template <int>
Tensor std(const Arg& x, const Axes& axes, VarianceOptions options) {
  return variance_over(std_op, x, axes, options);
}
template Tensor var<0>(const Arg& x, const Axes& axes, VarianceOptions options);
template Tensor std<0>(const Arg& x, const Axes& axes, VarianceOptions options);

// The indices of elements of rows by their ranks: no gradient. median reads the elements by gather, which has one.

constexpr OpInfo places_of_ranks_op{
    .name = "places_of_ranks",
    .forward =
        [](Call& call) {
          const auto& [ranks] = call.attributes<RankAttributes>();
          kernels(call.output().device).places_of_ranks(call.output(), call.input(0), ranks);
        },
    .joining = by_leading_axes,
    .internal = true,
};

Tensor detail::places_of_ranks(const Tensor& rows, std::span<const std::int64_t> ranks, Location where) {
  Shape shape = rows.shape();
  shape[-1] = std::ssize(ranks);
  RankAttributes attributes{{ranks.front(), ranks.back()}};
  return invoke(places_of_ranks_op, {&rows}, {shape, DType::i64, rows.device()}, where, bytes_of(attributes));
}

namespace {

// The medians of the rows of (…, N): (…).
Tensor median_of_rows(const Tensor& x, Location where) {
  std::int64_t size = x.size(-1), ranks[] = {size / 2, size / 2};
  if (size % 2 == 0) --ranks[0];
  bool one = size % 2 != 0;
  Tensor places = places_of_ranks(x, std::span(ranks, one ? 1 : 2), where);
  Tensor middle = gather(x, -1, places);
  if (!is_floating(middle.dtype())) middle = to(middle, DType::f32);
  if (one) return select(middle, -1, 0);
  // Halved first: the sum of the two may overflow.
  middle = middle * 0.5;
  return select(middle, -1, 0) + select(middle, -1, 1);
}

}  // namespace

Tensor median(const Arg& arg, const Axes& axes, ReduceOptions options) {
  const Tensor& x = tensor_of("median", arg);
  Location where = arg.location();
  AxisSet set = axis_set("median", x, axes, where);
  check_not_of_nothing("median", "middle element", x, set, where);
  OpScope caller(where, "median");
  Shape shape = kept_shape(x, set);
  AxisSet reduced = axes_between(x.shape(), shape);
  DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::f32;
  Tensor y;
  if (reduced == 0)
    y = to(x, dtype);
  else if (shape.numel() == 0)
    y = sum_to_if_needed(to_if_needed(x, dtype), shape);
  else
    y = reshape(median_of_rows(join_axes(x, reduced), where), shape);
  return without_axes(std::move(y), set, options.keepdims, where);
}

OpList detail::statistics_ops() {
  static constexpr const OpInfo* ops[] = {&var_op, &std_op, &places_of_ranks_op};
  return ops;
}

}  // namespace reel
