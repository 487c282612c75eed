#pragma once

#include <reel/tensor.h>

namespace reel {

/// Whether a = b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor equal(const Arg& a, const Arg& b);
/// Whether a ≠ b, elementwise, as bool; true with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor not_equal(const Arg& a, const Arg& b);
/// Whether a < b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor less(const Arg& a, const Arg& b);
/// Whether a ≤ b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor less_equal(const Arg& a, const Arg& b);
/// Whether a > b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor greater(const Arg& a, const Arg& b);
/// Whether a ≥ b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor greater_equal(const Arg& a, const Arg& b);

/// Whether both operands are true, elementwise, as bool: any number other than 0 is true, NaN too. Operands of any
/// dtype broadcast; no gradient.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor logical_and(const Arg& a, const Arg& b);
/// Whether at least one operand is true, elementwise, as bool: any number other than 0 is true, NaN too. Operands of
/// any dtype broadcast; no gradient.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor logical_or(const Arg& a, const Arg& b);
/// Whether exactly one operand is true, elementwise, as bool: any number other than 0 is true, NaN too. Operands of any
/// dtype broadcast; no gradient.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor logical_xor(const Arg& a, const Arg& b);
/// Whether x is 0, elementwise, as bool: the negation of a bool; NaN is not 0. Any dtype; no gradient.
Tensor logical_not(const Arg& x);

/// Whether x is NaN, elementwise, as bool; false for integers and bools. No gradient.
Tensor isnan(const Arg& x);
/// Whether x is ∞ or −∞, elementwise, as bool; false for integers and bools. No gradient.
Tensor isinf(const Arg& x);
/// Whether x is neither infinite nor NaN, elementwise, as bool; true for integers and bools. No gradient.
Tensor isfinite(const Arg& x);

/// Options of `isclose` and `allclose`.
struct ToleranceOptions {
  double relative = 1e-5;  ///< the part of |b| by which a may differ, at least 0; default 10⁻⁵
  double absolute = 1e-8;  ///< what a may differ besides, at least 0; default 10⁻⁸
  bool equal_nan = false;  ///< whether two NaNs are close; default false
};

/// Whether |a − b| ≤ absolute + relative · |b|, elementwise, as bool; equal infinities are close, other ones are not.
/// Operands broadcast and are compared in a common dtype, integers in f64; no gradient.
/// Throws: Error for a negative tolerance; DTypeError for a number that does not fit the dtype; ShapeError unless the
/// shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's isclose.
Tensor isclose(const Arg& a, const Arg& b, ToleranceOptions options = {});
/// Whether `isclose` is true of all elements. Waits for the result of a GPU.
/// Throws: Error for a negative tolerance; DTypeError for a number that does not fit the dtype; ShapeError unless the
/// shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's allclose.
bool allclose(const Arg& a, const Arg& b, ToleranceOptions options = {});

/// a where `condition`, a bool tensor, is true, b elsewhere. All three broadcast; a and b are combined in a common
/// dtype.
/// Throws: DTypeError unless the condition is bool, and for a number that does not fit the dtype; ShapeError unless the
/// shapes broadcast; DeviceError for operands on different devices.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);

/// Whether a = b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for equal(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator==(const Arg& a, const Arg& b) { return equal(a, b); }
/// Whether a ≠ b, elementwise, as bool; true with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for not_equal(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator!=(const Arg& a, const Arg& b) { return not_equal(a, b); }
/// Whether a < b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for less(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator<(const Arg& a, const Arg& b) { return less(a, b); }
/// Whether a ≤ b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for less_equal(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator<=(const Arg& a, const Arg& b) { return less_equal(a, b); }
/// Whether a > b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for greater(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator>(const Arg& a, const Arg& b) { return greater(a, b); }
/// Whether a ≥ b, elementwise, as bool; false with NaN. Operands broadcast and are compared in a common dtype; no
/// gradient. Short for greater_equal(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator>=(const Arg& a, const Arg& b) { return greater_equal(a, b); }
/// Whether x is 0, elementwise, as bool: the negation of a bool; NaN is not 0. Any dtype; no gradient. Short for
/// logical_not(x).
inline Tensor operator!(const Arg& x) { return logical_not(x); }

}  // namespace reel
