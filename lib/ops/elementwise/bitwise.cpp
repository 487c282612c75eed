#include <reel/ops/bitwise.h>

#include <reel/ops/comparison.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../core/dtype_dispatch.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// No op in this file has a gradient.

namespace {

template <class F>
constexpr OpInfo bits_op(const char* name) {
  return {.name = name, .forward = binary_forward<F>, .joining = by_elements};
}

constexpr OpInfo bitwise_and_op = bits_op<formulas::BitwiseAnd>("bitwise_and");
constexpr OpInfo bitwise_or_op = bits_op<formulas::BitwiseOr>("bitwise_or");
constexpr OpInfo bitwise_xor_op = bits_op<formulas::BitwiseXor>("bitwise_xor");
constexpr OpInfo bitwise_left_shift_op = bits_op<formulas::LeftShift>("bitwise_left_shift");
constexpr OpInfo bitwise_right_shift_op = bits_op<formulas::RightShift>("bitwise_right_shift");

}  // namespace

Tensor bitwise_and(const Arg& a, const Arg& b) {
  return binary_general(bitwise_and_op, a, b, Types::integers_and_bools);
}
Tensor bitwise_or(const Arg& a, const Arg& b) { return binary_general(bitwise_or_op, a, b, Types::integers_and_bools); }
Tensor bitwise_xor(const Arg& a, const Arg& b) {
  return binary_general(bitwise_xor_op, a, b, Types::integers_and_bools);
}
Tensor bitwise_left_shift(const Arg& a, const Arg& b) {
  return binary_general(bitwise_left_shift_op, a, b, Types::integers);
}
Tensor bitwise_right_shift(const Arg& a, const Arg& b) {
  return binary_general(bitwise_right_shift_op, a, b, Types::integers);
}

// bitwise_not: y = x with all bits inverted

Tensor bitwise_not(const Arg& x) {
  const char* name = "bitwise_not";
  const Tensor& tensor = tensor_of(name, x);
  if (is_floating(tensor.dtype()))
    fail<DTypeError>(name, x.location(), "takes integers or bools, not {}; convert with to(x, i64)", describe(tensor));
  if (tensor.dtype() == DType::boolean) return logical_not(x);
  OpScope caller(x.location(), name);
  // All bits as the largest number, or as −1.
  std::int64_t all = with_integer(tensor.dtype(), []<class T>(std::type_identity<T>) {
    return static_cast<std::int64_t>(std::is_signed_v<T> ? T(-1) : std::numeric_limits<T>::max());
  });
  return bitwise_xor(tensor, all);
}

OpList detail::bitwise_ops() {
  static constexpr const OpInfo* ops[] = {&bitwise_and_op, &bitwise_or_op, &bitwise_xor_op, &bitwise_left_shift_op,
                                          &bitwise_right_shift_op};
  return ops;
}

}  // namespace reel
