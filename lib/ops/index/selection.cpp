#include <reel/ops/elementwise.h>

#include <cmath>
#include <limits>

#include "../../core/dtype_dispatch.h"
#include "../elementwise/elementwise.h"
#include "../if_needed.h"
#include "../registry.h"

namespace reel {

using namespace detail;

namespace {

bool broadcast_all(const Tensor& a, const Tensor& b, const Tensor& c, Shape& shape) {
  Shape of_two;
  return broadcast(a.shape(), b.shape(), of_two) && broadcast(of_two, c.shape(), shape);
}

}  // namespace

// y = a where c, else b;  da = d where c, else 0;  db = 0 where c, else d

constexpr OpInfo where_op{
    .name = "where",
    .forward =
        [](Call& call) {
          kernels(call.output().device).where(call.output(), call.input(0), call.input(1), call.input(2));
        },
    .gradient =
        [](Gradient& g) {
          enum { in_condition, in_a, in_b };
          if (g.wants(in_a)) g.accumulate(in_a, where(g.saved_input(in_condition), g.output(), 0.0));
          if (g.wants(in_b)) g.accumulate(in_b, where(g.saved_input(in_condition), 0.0, g.output()));
        },
    .saves_input_for = {inputs({1, 2})},
    .joining = by_elements,
};

Tensor where(const Arg& condition, const Arg& a, const Arg& b) {
  const char* name = where_op.name;
  Location call_site = condition.location();
  const Tensor& chosen = tensor_of(name, condition);
  if (chosen.dtype() != DType::boolean)
    fail<DTypeError>(name, call_site, "the condition is {}, not bool; compare it with something", describe(chosen));
  DType dtype = common_dtype(name, a, b);
  Operand x(name, a, dtype, condition), y(name, b, dtype, condition);
  check_same_device(name, *x, *y, call_site);
  check_same_device(name, chosen, *x, call_site);
  Shape shape;
  if (!broadcast_all(chosen, *x, *y, shape))
    fail<ShapeError>(name, call_site, "shapes do not broadcast: condition {}, a {}, b {}", to_string(chosen.shape()),
                     to_string(x->shape()), to_string(y->shape()));
  return invoke(where_op, {&chosen, &*x, &*y}, in_order_of({shape, dtype, chosen.device()}, {&*x, &*y, &chosen}),
                call_site);
}

// y = the larger of a and b;  da = d where a > b, d / 2 where a = b, else 0;  db = d where b > a, d / 2 where a = b,
// else 0

constexpr OpInfo maximum_op{
    .name = "maximum",
    .forward = binary_forward<formulas::Maximum>,
    .gradient =
        [](Gradient& g) {
          enum { in_a, in_b };
          const Tensor &a = g.saved_input(in_a), &b = g.saved_input(in_b);
          // If an operand is NaN, both get the gradient.
          Tensor shared = where(a == b, g.output() * 0.5, g.output());
          if (g.wants(in_a)) g.accumulate(in_a, where(a < b, 0.0, shared));
          if (g.wants(in_b)) g.accumulate(in_b, where(b < a, 0.0, shared));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .joining = by_elements,
};

Tensor maximum(const Arg& a, const Arg& b) { return binary<formulas::Maximum>(maximum_op, a, b, Types::extreme); }

// y = the smaller of a and b;  da = d where a < b, d / 2 where a = b, else 0;  db = d where b < a, d / 2 where a = b,
// else 0

constexpr OpInfo minimum_op{
    .name = "minimum",
    .forward = binary_forward<formulas::Minimum>,
    .gradient =
        [](Gradient& g) {
          enum { in_a, in_b };
          const Tensor &a = g.saved_input(in_a), &b = g.saved_input(in_b);
          // If an operand is NaN, both get the gradient.
          Tensor shared = where(a == b, g.output() * 0.5, g.output());
          if (g.wants(in_a)) g.accumulate(in_a, where(a > b, 0.0, shared));
          if (g.wants(in_b)) g.accumulate(in_b, where(b > a, 0.0, shared));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .joining = by_elements,
};

Tensor minimum(const Arg& a, const Arg& b) { return binary<formulas::Minimum>(minimum_op, a, b, Types::extreme); }

// y = min(max(x, low), high);  dx = d where low ≤ x ≤ high,  dlow = d where x < low ≤ high,
// dhigh = d where x > high or low > high; 0 elsewhere

constexpr OpInfo clamp_op{
    .name = "clamp",
    .forward =
        [](Call& call) {
          kernels(call.output().device).clamp(call.output(), call.input(0), call.input(1), call.input(2));
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_low, in_high };
          const Tensor &d = g.output(), &x = g.saved_input(in_x), &low = g.saved_input(in_low),
                       &high = g.saved_input(in_high);
          if (g.wants(in_x)) g.accumulate(in_x, where(logical_and(x >= low, x <= high), d, 0.0));
          if (g.wants(in_low)) g.accumulate(in_low, where(logical_and(x < low, low <= high), d, 0.0));
          if (g.wants(in_high)) g.accumulate(in_high, where(logical_or(x > high, low > high), d, 0.0));
        },
    .saves_input_for = {inputs({0, 1, 2}), inputs({0, 1, 2}), inputs({0, 1, 2})},
    .joining = by_elements,
};

namespace {

bool is_unbounded(const Arg& bound) { return bound.kind() == Arg::Kind::floating && std::isinf(bound.number()); }

// A bound that has no effect, as a number of the dtype.
Arg end_of(DType dtype, const Arg& bound) {
  Location where = bound.location();
  if (is_floating(dtype)) return Arg(bound.number(), where.file, where.line);
  bool low = bound.number() < 0;
  return with_integer(dtype, [&]<class T>(std::type_identity<T>) {
    using Limits = std::numeric_limits<T>;
    return Arg(low ? Limits::min() : Limits::max(), where.file, where.line);
  });
}

}  // namespace

Tensor clamp(const Arg& x, const Arg& low, const Arg& high) {
  const char* name = clamp_op.name;
  Location where = x.location();
  const Tensor& tensor = tensor_of(name, x);
  DType dtype = tensor.dtype();
  if (!is_unbounded(low)) dtype = promote(dtype, common_dtype(name, x, low));
  if (!is_unbounded(high)) dtype = promote(dtype, common_dtype(name, x, high));
  if (dtype == DType::boolean)
    fail<DTypeError>(name, where, "takes numbers, not {}; convert it with to(x, i32)", describe(tensor));
  Operand from(name, x, dtype, x), least(name, is_unbounded(low) ? end_of(dtype, low) : low, dtype, x),
      most(name, is_unbounded(high) ? end_of(dtype, high) : high, dtype, x);
  check_same_device(name, *from, *least, where);
  check_same_device(name, *from, *most, where);
  Shape shape;
  if (!broadcast_all(*from, *least, *most, shape))
    fail<ShapeError>(name, where, "shapes do not broadcast: x {}, low {}, high {}", to_string(from->shape()),
                     to_string(least->shape()), to_string(most->shape()));
  return invoke(clamp_op, {&*from, &*least, &*most},
                in_order_of({shape, dtype, from->device()}, {&*from, &*least, &*most}), where);
}

// y = a + w (b − a);  da = d (1 − w),  db = d w,  dw = d (b − a)

constexpr OpInfo lerp_op{
    .name = "lerp",
    .forward =
        [](Call& call) {
          kernels(call.output().device).lerp(call.output(), call.input(0), call.input(1), call.input(2));
        },
    .gradient =
        [](Gradient& g) {
          enum { in_a, in_b, in_weight };
          const Tensor& d = g.output();
          if (g.wants(in_a)) g.accumulate(in_a, d * (1.0 - g.saved_input(in_weight)));
          if (g.wants(in_b)) g.accumulate(in_b, d * g.saved_input(in_weight));
          if (g.wants(in_weight))
            g.accumulate(in_weight, d * (widened(g.saved_input(in_b)) - widened(g.saved_input(in_a))));
        },
    .saves_input_for = {inputs({2}), inputs({2}), inputs({0, 1})},
    .joining = by_elements,
};

Tensor lerp(const Arg& a, const Arg& b, const Arg& weight) {
  const char* name = lerp_op.name;
  Location where = a.location();
  DType dtype = common_dtype(name, a, b);
  if (weight.is_tensor()) dtype = promote(dtype, common_dtype(name, a, weight));
  if (!is_floating(dtype)) dtype = DType::f32;
  const Arg& beside = a.is_tensor() ? a : b;
  Operand from(name, a, arithmetic_dtype(a, dtype), b), to(name, b, arithmetic_dtype(b, dtype), a),
      by(name, weight, arithmetic_dtype(weight, dtype), beside);
  check_same_device(name, *from, *to, where);
  check_same_device(name, *from, *by, where);
  Shape shape;
  if (!broadcast_all(*from, *to, *by, shape))
    fail<ShapeError>(name, where, "shapes do not broadcast: a {}, b {}, weight {}", to_string(from->shape()),
                     to_string(to->shape()), to_string(by->shape()));
  return invoke(lerp_op, {&*from, &*to, &*by}, in_order_of({shape, dtype, from->device()}, {&*from, &*to, &*by}),
                where);
}

OpList detail::selection_ops() {
  static constexpr const OpInfo* ops[] = {&where_op, &maximum_op, &minimum_op, &clamp_op, &lerp_op};
  return ops;
}

}  // namespace reel
