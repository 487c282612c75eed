#include "scan.h"

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../operand.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

DType scan_dtype(const Tensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::i64; }

Tensor scan(const OpInfo& op, const Tensor& x, ScanAttributes attributes, Location where) {
  return invoke(op, {&x}, {x.body(), scan_dtype(x)}, where, bytes_of(attributes));
}

Tensor scan_along(const OpInfo& op, const Arg& x, int axis) {
  const Tensor& tensor = tensor_of(op.name, x);
  return scan(op, tensor, {check_axis(op.name, axis, tensor, x.location()), false}, x.location());
}

Tensor scan_all(const OpInfo& op, const Arg& x) {
  tensor_of(op.name, x);
  Tensor flat = reshape(x, {-1});
  return scan(op, flat, {0, false}, x.location());
}

}  // namespace

Tensor detail::before(const Tensor& x, int axis, bool backwards, double edge) {
  Shape shape = x.shape();
  std::int64_t size = shape[axis];
  if (size == 0) return x;
  shape[axis] = 1;
  Tensor first = full(shape, edge, {.dtype = x.dtype(), .device = x.device()});
  // Two statements: if one of these throws, g++ 12 destroys the lists of a conditional expression after their scope.
  if (backwards) return concat({slice(x, axis, 1), first}, axis);
  return concat({first, slice(x, axis, 0, size - 1)}, axis);
}

// y_i = x_i + y_(i − 1);  dx_i = d_i + dx_(i + 1)

constexpr OpInfo cumsum_op{
    .name = "cumsum",
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<ScanAttributes>();
          kernels(call.output().device).cumsum(call.output(), call.input(0), at.on_axis(), at.backwards);
        },
    .gradient =
        [](Gradient& g) {
          Tensor back = invoke(*g.op(), {&g.output()}, {g.output().body(), g.output().dtype()}, g.where(),
                               bytes_of(g.attributes<ScanAttributes>().reversed()));
          g.accumulate(0, std::move(back));
        },
    .precision = Precision::full,
    .joining = by_other_axes,
};

Tensor cumsum(const Arg& x) { return scan_all(cumsum_op, x); }
Tensor cumsum(const Arg& x, int axis) { return scan_along(cumsum_op, x, axis); }

// y_i = b_i + a_i y_(i − 1);  db_i = d_i + a_(i + 1) db_(i + 1),  da_i = db_i y_(i − 1)

namespace {

void recurrence_forward(Call& call) {
  const auto& at = call.attributes<ScanAttributes>();
  kernels(call.output().device).recurrence(call.output(), call.input(0), call.input(1), at.on_axis(), at.backwards);
}

void recurrence_gradient(Gradient& g);

constexpr OpInfo recurrence_op{
    .name = "recurrence",
    .forward = recurrence_forward,
    .gradient = recurrence_gradient,
    .saves_input_for = {inputs({0, 1})},
    .saves_output_for = {inputs({0})},
    .internal = true,
};

// The gradient of each term of a recurrence, accumulated from all later ones; `next` has the factor of the term behind.
Tensor accumulate_back(const Tensor& next, const Tensor& d, ScanAttributes forwards, Location where) {
  return invoke(recurrence_op, {&next, &d}, {d.body(), d.dtype()}, where, bytes_of(forwards.reversed()));
}

Tensor back_through(const Tensor& factors, const Tensor& d, ScanAttributes forwards, Location where) {
  ScanAttributes back = forwards.reversed();
  return accumulate_back(before(factors, back.on_axis(), back.backwards, 0), d, forwards, where);
}

void recurrence_gradient(Gradient& g) {
  enum { in_factors, in_terms };
  const auto& at = g.attributes<ScanAttributes>();
  Tensor terms = back_through(g.saved_input(in_factors), g.output(), at, g.where());
  if (g.wants(in_factors)) g.accumulate(in_factors, terms * before(g.saved_output(), at.on_axis(), at.backwards, 0));
  g.accumulate(in_terms, std::move(terms));
}

}  // namespace

// y_i = x_i y_(i − 1);  dx_i = (d_i + x_(i + 1) (d_(i + 1) + x_(i + 2) (…))) y_(i − 1), without a quotient

constexpr OpInfo cumprod_op{
    .name = "cumprod",
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<ScanAttributes>();
          kernels(call.output().device).cumprod(call.output(), call.input(0), at.on_axis(), at.backwards);
        },
    .gradient =
        [](Gradient& g) {
          const auto& at = g.attributes<ScanAttributes>();
          const Tensor& x = g.saved_input(0);
          if (x.size(at.on_axis()) == 1) return g.accumulate(0, g.output());
          // Where a product of halves underflows, a sum of later ones may overflow: their product would be NaN.
          bool half = is_half(x.dtype());
          Tensor wide = widened(x), products = half ? scan(*g.op(), wide, at, g.where()) : g.saved_output();
          Tensor terms = back_through(wide, widened(g.output()), at, g.where());
          g.accumulate(0, to_if_needed(terms * before(products, at.on_axis(), at.backwards, 1), x.dtype()));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_other_axes,
};

Tensor cumprod(const Arg& x) { return scan_all(cumprod_op, x); }
Tensor cumprod(const Arg& x, int axis) { return scan_along(cumprod_op, x, axis); }

// y_i = log Σ e^x_j over j ≤ i;  dx_i = e^(x_i − y_i) r_i,  r_i = d_i + e^(y_i − y_(i + 1)) r_(i + 1)

namespace {

// e^(y_i − y_(i + 1)), and 0 at the end and where y becomes ∞. `finite` is y, but 0 where that is −∞.
Tensor later_weights(const Tensor& y, const Tensor& finite, const Tensor& infinite, int axis) {
  std::int64_t size = y.size(axis);
  if (size == 0) return y;
  Shape one = y.shape();
  one[axis] = 1;
  Tensor last = zeros(one, {.dtype = y.dtype(), .device = y.device()});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tensor starts = slice(infinite, axis, 1) > slice(infinite, axis, 0, size - 1);
  Tensor apart = where(starts, -infinity, slice(y, axis, 0, size - 1) - slice(finite, axis, 1));
  return concat({exp(apart), last}, axis);
}

}  // namespace

constexpr OpInfo logcumsumexp_op{
    .name = "logcumsumexp",
    .forward =
        [](Call& call) {
          const auto& at = call.attributes<ScanAttributes>();
          kernels(call.output().device).logcumsumexp(call.output(), call.input(0), at.on_axis());
        },
    .gradient =
        [](Gradient& g) {
          const auto& at = g.attributes<ScanAttributes>();
          constexpr double infinity = std::numeric_limits<double>::infinity();
          // A rounded y would be off by more than a weight's own rounding, so halves compute it again.
          Tensor x = widened(g.saved_input(0));
          Tensor y = is_half(g.input_dtype(0)) ? scan(*g.op(), x, at, g.where()) : g.saved_output();
          // Where y is ∞, each x that is ∞ weighs 1 and all others nothing: y becomes the logarithm of their number.
          Tensor infinite = y == infinity, reached = x == infinity;
          Tensor count = where(infinite, cumsum(to(reached, x.dtype()), at.on_axis()), 1.0);
          y = where(infinite, log(count), y);
          Tensor finite = where(y == -infinity, 0.0, y), exponents = where(reached, 0.0, where(infinite, -infinity, x));
          Tensor weights = later_weights(y, finite, infinite, at.on_axis());
          Tensor terms = accumulate_back(weights, widened(g.output()), at, g.where());
          g.accumulate(0, to_if_needed(terms * exp(exponents - finite), g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_other_axes,
};

Tensor logcumsumexp(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of(logcumsumexp_op.name, x);
  if (!is_floating(tensor.dtype())) return logcumsumexp(Arg(to(x, DType::f32), x.location()), axis);
  return scan_along(logcumsumexp_op, x, axis);
}

Tensor detail::running_product(const Tensor& x, int axis, bool backwards, Location where) {
  return scan(cumprod_op, x, {axis, backwards}, where);
}

OpList detail::scan_ops() {
  static constexpr const OpInfo* ops[] = {&cumsum_op, &cumprod_op, &logcumsumexp_op, &recurrence_op};
  return ops;
}

}  // namespace reel
