#include <reel/ops/reduce.h>

#include <reel/no_record.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <limits>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"
#include "reduction.h"
#include "scan.h"

namespace reel {

using namespace detail;

// y = Σ x over the axes on which y has size 1;  dx = d, repeated along them

constexpr OpInfo sum_op{
    .name = "sum",
    .forward = reduce_forward<Reduction::sum>,
    .gradient = [](Gradient& g) { g.accumulate(0, expand_if_needed(g.output(), g.input_shape(0))); },
    .precision = Precision::full,
    .joining = by_kept_axes,
};

namespace {

DType sum_dtype(const Tensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::i64; }

Tensor sum_over(const Tensor& x, AxisSet axes, bool keepdims, Location where) {
  return reduce_to_kept(sum_op, x, axes, sum_dtype(x), keepdims, where);
}

}  // namespace

Tensor sum(const Arg& x, const Axes& axes, ReduceOptions options) {
  const Tensor& tensor = tensor_of("sum", x);
  return sum_over(tensor, axis_set("sum", tensor, axes, x.location()), options.keepdims, x.location());
}

Tensor sum_to(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("sum_to", x);
  Location where = x.location();
  int extra = tensor.rank() - shape.rank();
  AxisSet axes = 0;
  bool fits = extra >= 0;
  for (int i = 0; fits && i < tensor.rank(); ++i) {
    std::int64_t size = tensor.body().dims[i];
    if (i < extra || (shape[i - extra] == 1 && size != 1))
      axes |= 1u << i;
    else
      fits = shape[i - extra] == size;
  }
  if (!fits) fail<ShapeError>("sum_to", where, "{} does not broadcast to {}", to_string(shape), describe(tensor));
  if (axes == 0) return copy(x);
  return reshape(Arg(sum_over(tensor, axes, true, where), where), shape);
}

// mean = Σ x / n

Tensor mean(const Arg& arg, const Axes& axes, ReduceOptions options) {
  const Tensor& x = tensor_of("mean", arg);
  Location where = arg.location();
  check_floating("mean", x, where);
  AxisSet set = axis_set("mean", x, axes, where);
  OpScope caller(where, "mean");
  // The sum of many halves may overflow although their mean does not.
  Tensor total = sum_over(widened(x), set, options.keepdims, where);
  return to_if_needed(total / count_along(x, set), autocast_dtype(Precision::full, x.dtype()));
}

// y = Π x;  dx_i = d Π_(j ≠ i) x_j: the product of all elements before i and all after i, or y / x_i if all y are far from 0
// and ∞

namespace {

bool is_far_from_bounds(const Tensor& y) {
  NoRecord pause;
  Tensor size = abs(y);
  return value_to_check<bool>(all(logical_and(size > 1e-290, size < 1e290)));
}

}  // namespace

constexpr OpInfo prod_op{
    .name = "prod",
    .forward = reduce_forward<Reduction::prod>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          AxisSet axes = axes_between(x.shape(), g.output().shape());
          if (axes == 0 || x.numel() == 0) return g.accumulate(0, expand_if_needed(g.output(), x.shape()));
          // In f64 as the product: neither part may overflow or underflow if the whole does not.
          Tensor wide = to_if_needed(x, DType::f64), d = to_if_needed(g.output(), DType::f64);
          if (x.device() == cpu)
            if (Tensor y = reduce_to_kept(*g.op(), wide, axes, DType::f64, true, g.where()); is_far_from_bounds(y))
              return g.accumulate(0, to_if_needed(d * (y / wide), x.dtype()));
          Tensor row = join_axes(wide, axes), others;
          int last = row.rank() - 1;
          for (bool backwards : {false, true}) {
            Tensor rest = before(running_product(row, last, backwards, g.where()), last, backwards, 1);
            others = backwards ? others * rest : rest;
          }
          g.accumulate(0, to_if_needed(d * split_axes(others, x.shape(), axes), x.dtype()));
        },
    .saves_input_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_kept_axes,
};

Tensor prod(const Arg& x, const Axes& axes, ReduceOptions options) {
  const Tensor& tensor = tensor_of("prod", x);
  AxisSet set = axis_set("prod", tensor, axes, x.location());
  return reduce_to_kept(prod_op, tensor, set, sum_dtype(tensor), options.keepdims, x.location());
}

// y = max x or min x;  dx = d / (count of elements equal to y) where x = y, else 0

namespace {

void extreme_gradient(Gradient& g) {
  const Tensor& x = g.saved_input(0);
  // f16 cannot hold large counts.
  Tensor d = widened(g.output()), reached = to(x == g.saved_output(), d.dtype());
  g.accumulate(0, to_if_needed(reached * (d / sum_to_if_needed(reached, d.shape())), x.dtype()));
}

template <Reduction op>
constexpr OpInfo extreme_op(const char* name) {
  return {.name = name,
          .forward = reduce_forward<op>,
          .gradient = extreme_gradient,
          .saves_input_for = {inputs({0})},
          .saves_output_for = {inputs({0})},
          .joining = by_kept_axes};
}

constexpr OpInfo max_op = extreme_op<Reduction::max>("max");
constexpr OpInfo min_op = extreme_op<Reduction::min>("min");

// `what`: the sought element, for errors. The result is the element, or its index as i64.
enum class Result : std::uint8_t { element, place };

Tensor extreme_over(const OpInfo& op, const char* what, Result result, const Arg& x, const Axes& axes,
                    ReduceOptions options) {
  const Tensor& tensor = tensor_of(op.name, x);
  AxisSet set = axis_set(op.name, tensor, axes, x.location());
  check_not_of_nothing(op.name, what, tensor, set, x.location());
  DType dtype = result == Result::place ? DType::i64 : tensor.dtype();
  return reduce_to_kept(op, tensor, set, dtype, options.keepdims, x.location());
}

constexpr const char *largest = "largest element", *smallest = "smallest element";

}  // namespace

Tensor max(const Arg& x, const Axes& axes, ReduceOptions options) {
  return extreme_over(max_op, largest, Result::element, x, axes, options);
}
Tensor min(const Arg& x, const Axes& axes, ReduceOptions options) {
  return extreme_over(min_op, smallest, Result::element, x, axes, options);
}

// Indices and truth values have no gradient.

namespace {

template <Reduction op>
constexpr OpInfo constant_op(const char* name) {
  return {.name = name, .forward = reduce_forward<op>, .joining = by_kept_axes};
}

constexpr OpInfo argmax_op = constant_op<Reduction::argmax>("argmax");
constexpr OpInfo argmin_op = constant_op<Reduction::argmin>("argmin");
constexpr OpInfo any_op = constant_op<Reduction::max>("any");
constexpr OpInfo all_op = constant_op<Reduction::min>("all");

Tensor place_over(const OpInfo& op, const char* what, const Arg& x, const Axes& axis, ReduceOptions options) {
  if (const Shape* list = axis.list(); list && list->rank() != 1)
    fail<ShapeError>(op.name, x.location(), "takes one axis, or all of them, not {}, for {}", to_string(*list),
                     describe(tensor_of(op.name, x)));
  return extreme_over(op, what, Result::place, x, axis, options);
}

// Bools that are true for elements that are not 0.
Tensor truth_of(const char* op, const Arg& x) {
  const Tensor& tensor = tensor_of(op, x);
  return tensor.dtype() == DType::boolean ? tensor : not_equal(x, 0);
}

Tensor truth_over(const OpInfo& op, const Arg& x, const Axes& axes, ReduceOptions options) {
  AxisSet set = axis_set(op.name, tensor_of(op.name, x), axes, x.location());
  return reduce_to_kept(op, truth_of(op.name, x), set, DType::boolean, options.keepdims, x.location());
}

}  // namespace

Tensor argmax(const Arg& x, const Axes& axis, ReduceOptions options) {
  return place_over(argmax_op, largest, x, axis, options);
}
Tensor argmin(const Arg& x, const Axes& axis, ReduceOptions options) {
  return place_over(argmin_op, smallest, x, axis, options);
}

Tensor any(const Arg& x, const Axes& axes, ReduceOptions options) { return truth_over(any_op, x, axes, options); }
Tensor all(const Arg& x, const Axes& axes, ReduceOptions options) { return truth_over(all_op, x, axes, options); }

Tensor count_nonzero(const Arg& x, const Axes& axes, ReduceOptions options) {
  AxisSet set = axis_set("count_nonzero", tensor_of("count_nonzero", x), axes, x.location());
  return sum_over(truth_of("count_nonzero", x), set, options.keepdims, x.location());
}

// y = log Σ e^x;  dx = d e^(x − y), 0 where y = −∞; elements that are ∞ share d

constexpr OpInfo logsumexp_op{
    .name = "logsumexp",
    .forward = reduce_forward<Reduction::logsumexp>,
    .gradient =
        [](Gradient& g) {
          constexpr double infinity = std::numeric_limits<double>::infinity();
          Tensor x = widened(g.saved_input(0)), y = widened(g.saved_output());
          Tensor finite = where(y == -infinity, 0.0, y);
          Tensor weights = exp(where(x == infinity, 0.0, x - finite));
          // The weights' sum differs from 1 by the rounding error of y, which is large if y is, so they are normalised.
          Tensor total = sum_to_if_needed(weights, y.shape());
          Tensor share = widened(g.output()) / where(total == 0.0, 1.0, total);
          g.accumulate(0, to_if_needed(share * weights, g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_kept_axes,
};

Tensor logsumexp(const Arg& x, const Axes& axes, ReduceOptions options) {
  const char* name = logsumexp_op.name;
  const Tensor& tensor = tensor_of(name, x);
  AxisSet set = axis_set(name, tensor, axes, x.location());
  if (!is_floating(tensor.dtype())) return logsumexp(Arg(to(x, DType::f32), x.location()), axes, options);
  return reduce_to_kept(logsumexp_op, tensor, set, tensor.dtype(), options.keepdims, x.location());
}

OpList detail::reduce_ops() {
  static constexpr const OpInfo* ops[] = {&sum_op,    &prod_op, &max_op, &min_op,      &argmax_op,
                                          &argmin_op, &any_op,  &all_op, &logsumexp_op};
  return ops;
}

}  // namespace reel
