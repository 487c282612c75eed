#include <reel/ops/comparison.h>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/reduce.h>

#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// No op in this file has a gradient.

namespace {

template <class F>
constexpr OpInfo comparison_op(const char* name) {
  return {.name = name, .forward = binary_forward<F>, .joining = by_elements};
}

// The comparison with the operands exchanged.
template <class F>
constexpr OpInfo exchanged_op(const char* name) {
  OpInfo op = comparison_op<F>(name);
  op.forward = [](Call& call) {
    kernels(call.output().device).binary[binary_place<F>](call.output(), call.input(1), call.input(0));
  };
  return op;
}

constexpr OpInfo equal_op = comparison_op<formulas::Equal>("equal");
constexpr OpInfo not_equal_op = comparison_op<formulas::NotEqual>("not_equal");
constexpr OpInfo less_op = comparison_op<formulas::Less>("less");
constexpr OpInfo less_equal_op = comparison_op<formulas::LessEqual>("less_equal");
constexpr OpInfo greater_op = exchanged_op<formulas::Less>("greater");
constexpr OpInfo greater_equal_op = exchanged_op<formulas::LessEqual>("greater_equal");
constexpr OpInfo logical_and_op = comparison_op<formulas::LogicalAnd>("logical_and");
constexpr OpInfo logical_or_op = comparison_op<formulas::LogicalOr>("logical_or");
constexpr OpInfo logical_xor_op = comparison_op<formulas::LogicalXor>("logical_xor");

template <class F>
constexpr OpInfo predicate_op(const char* name) {
  return {.name = name, .forward = unary_forward<F>, .joining = by_elements};
}

constexpr OpInfo logical_not_op = predicate_op<formulas::LogicalNot>("logical_not");
constexpr OpInfo isnan_op = predicate_op<formulas::IsNan>("isnan");
constexpr OpInfo isinf_op = predicate_op<formulas::IsInfinite>("isinf");
constexpr OpInfo isfinite_op = predicate_op<formulas::IsFinite>("isfinite");

Tensor predicate(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  return invoke(op, {&tensor}, elementwise_result(tensor, DType::boolean), x.location());
}

Tensor floating_predicate(const OpInfo& op, const Arg& x, bool of_integers) {
  const Tensor& tensor = tensor_of(op.name, x);
  if (is_floating(tensor.dtype())) return predicate(op, x);
  OpScope caller(x.location(), op.name);
  return full(tensor.shape(), of_integers, {.dtype = DType::boolean, .device = tensor.device()});
}

}  // namespace

Tensor equal(const Arg& a, const Arg& b) { return binary(equal_op, a, b, Types::comparison); }
Tensor not_equal(const Arg& a, const Arg& b) { return binary(not_equal_op, a, b, Types::comparison); }
Tensor less(const Arg& a, const Arg& b) { return binary(less_op, a, b, Types::comparison); }
Tensor less_equal(const Arg& a, const Arg& b) { return binary(less_equal_op, a, b, Types::comparison); }
Tensor greater(const Arg& a, const Arg& b) { return binary(greater_op, a, b, Types::comparison); }
Tensor greater_equal(const Arg& a, const Arg& b) { return binary(greater_equal_op, a, b, Types::comparison); }
Tensor logical_and(const Arg& a, const Arg& b) { return binary(logical_and_op, a, b, Types::comparison); }
Tensor logical_or(const Arg& a, const Arg& b) { return binary(logical_or_op, a, b, Types::comparison); }
Tensor logical_xor(const Arg& a, const Arg& b) { return binary(logical_xor_op, a, b, Types::comparison); }
Tensor logical_not(const Arg& x) { return predicate(logical_not_op, x); }
Tensor isnan(const Arg& x) { return floating_predicate(isnan_op, x, false); }
Tensor isinf(const Arg& x) { return floating_predicate(isinf_op, x, false); }
Tensor isfinite(const Arg& x) { return floating_predicate(isfinite_op, x, true); }

// isclose = |a − b| ≤ absolute + relative |b|

namespace {

Tensor close_elements(const char* op, const Arg& a, const Arg& b, const ToleranceOptions& options) {
  Location where = a.location();
  for (double tolerance : {options.relative, options.absolute})
    if (!(tolerance >= 0)) fail<Error>(op, where, "the tolerance {} is not at least 0", tolerance);
  BinaryOperands given(op, a, b, Types::comparison);
  OpScope caller(where, op);
  NoRecord pause;
  bool floating = is_floating(given.dtype);
  Tensor x = floating ? widened(*given.a) : to(*given.a, DType::f64);
  Tensor y = floating ? widened(*given.b) : to(*given.b, DType::f64);
  Tensor error = abs(x - y), allowed = abs(y) * options.relative + options.absolute;
  // An infinite error is never close, even where the bound is infinite, too.
  Tensor close = logical_or(x == y, logical_and(isfinite(error), error <= allowed));
  return options.equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}

}  // namespace

Tensor isclose(const Arg& a, const Arg& b, ToleranceOptions options) {
  return close_elements("isclose", a, b, options);
}

bool allclose(const Arg& a, const Arg& b, ToleranceOptions options) {
  Tensor close = close_elements("allclose", a, b, options);
  CallerScope caller(a.location(), "allclose");
  return all(close).item<bool>();
}

OpList detail::comparison_ops() {
  static constexpr const OpInfo* ops[] = {
      &equal_op,      &not_equal_op,   &less_op,        &less_equal_op, &greater_op, &greater_equal_op, &logical_and_op,
      &logical_or_op, &logical_xor_op, &logical_not_op, &isnan_op,      &isinf_op,   &isfinite_op};
  return ops;
}

}  // namespace reel
