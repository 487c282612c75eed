#include <reel/ops/comparison.h>

#include <reel/ops/create.h>

#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// No op in this file has a gradient.

namespace {

template <class F>
constexpr OpInfo comparison_op(const char* name) {
  return {.name = name, .arity = 2, .batching = Batching::elementwise, .forward = binary_forward<F>};
}

constexpr OpInfo equal_op = comparison_op<formulas::Equal>("equal");
constexpr OpInfo not_equal_op = comparison_op<formulas::NotEqual>("not_equal");
constexpr OpInfo less_op = comparison_op<formulas::Less>("less");
constexpr OpInfo less_equal_op = comparison_op<formulas::LessEqual>("less_equal");
constexpr OpInfo greater_op = comparison_op<formulas::Greater>("greater");
constexpr OpInfo greater_equal_op = comparison_op<formulas::GreaterEqual>("greater_equal");
constexpr OpInfo logical_and_op = comparison_op<formulas::LogicalAnd>("logical_and");
constexpr OpInfo logical_or_op = comparison_op<formulas::LogicalOr>("logical_or");
constexpr OpInfo logical_xor_op = comparison_op<formulas::LogicalXor>("logical_xor");

template <class F>
constexpr OpInfo predicate_op(const char* name) {
  return {.name = name, .arity = 1, .batching = Batching::elementwise, .forward = unary_forward<F>};
}

constexpr OpInfo logical_not_op = predicate_op<formulas::LogicalNot>("logical_not");
constexpr OpInfo isnan_op = predicate_op<formulas::IsNan>("isnan");
constexpr OpInfo isinf_op = predicate_op<formulas::IsInfinite>("isinf");
constexpr OpInfo isfinite_op = predicate_op<formulas::IsFinite>("isfinite");

Tensor predicate(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  return invoke(op, {&tensor}, {tensor.body(), DType::boolean}, x.location());
}

Tensor floating_predicate(const OpInfo& op, const Arg& x, bool of_integers) {
  const Tensor& tensor = tensor_of(op.name, x);
  if (is_floating(tensor.dtype())) return predicate(op, x);
  CallerScope caller(x.location());
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

std::span<const RegisteredOp> detail::comparison_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "equal", .info = &equal_op},
      {.name = "not_equal", .info = &not_equal_op},
      {.name = "less", .info = &less_op},
      {.name = "less_equal", .info = &less_equal_op},
      {.name = "greater", .info = &greater_op},
      {.name = "greater_equal", .info = &greater_equal_op},
      {.name = "logical_and", .info = &logical_and_op},
      {.name = "logical_or", .info = &logical_or_op},
      {.name = "logical_xor", .info = &logical_xor_op},
      {.name = "logical_not", .info = &logical_not_op},
      {.name = "isnan", .info = &isnan_op},
      {.name = "isinf", .info = &isinf_op},
      {.name = "isfinite", .info = &isfinite_op},
  };
  return ops;
}

}  // namespace reel
