#pragma once

#include <reel/tensor.h>

/// \file
/// Elementwise functions of the bits of integers and bools. Operands broadcast as NumPy's do, and are combined in a
/// common dtype as PyTorch's are (see `promote`); plain numbers are weak scalars. None has a gradient.

namespace reel {

/// The bits that are set in both a and b, elementwise; for bool: and.
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
Tensor bitwise_and(const Arg& a, const Arg& b);
/// The bits that are set in a or b, elementwise; for bool: or.
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
Tensor bitwise_or(const Arg& a, const Arg& b);
/// The bits that differ between a and b, elementwise; for bool: exclusive or.
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
Tensor bitwise_xor(const Arg& a, const Arg& b);
/// All bits of x inverted, elementwise: −x − 1 of signed integers, 255 − x of u8; for bool: not.
/// Throws: DTypeError for floating x.
Tensor bitwise_not(const Arg& x);
/// The bits of a moved up by b places, elementwise: a · 2^b, of which higher bits are lost; 0 where b is negative or at
/// least the number of bits.
/// Throws: DTypeError for floating operands, two bools and a number that does not fit the dtype; ShapeError unless the
/// shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's bitwise_left_shift.
Tensor bitwise_left_shift(const Arg& a, const Arg& b);
/// The bits of a moved down by b places, elementwise: ⌊a / 2^b⌋; where b is negative or at least the number of bits: 0,
/// or −1 for a negative a.
/// Throws: DTypeError for floating operands, two bools and a number that does not fit the dtype; ShapeError unless the
/// shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's bitwise_right_shift.
Tensor bitwise_right_shift(const Arg& a, const Arg& b);

/// The bits that are set in both a and b, elementwise; for bool: and. Both operands are computed, unlike those of &&.
/// Short for bitwise_and(a, b).
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
inline Tensor operator&(const Arg& a, const Arg& b) { return bitwise_and(a, b); }
/// The bits that are set in a or b, elementwise; for bool: or. Both operands are computed, unlike those of ||. Short for
/// bitwise_or(a, b).
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
inline Tensor operator|(const Arg& a, const Arg& b) { return bitwise_or(a, b); }
/// The bits that differ between a and b, elementwise; for bool: exclusive or. Short for bitwise_xor(a, b).
/// Throws: DTypeError for floating operands and a number that does not fit the dtype; ShapeError unless the shapes
/// broadcast; DeviceError for operands on different devices.
inline Tensor operator^(const Arg& a, const Arg& b) { return bitwise_xor(a, b); }
/// All bits of x inverted, elementwise: −x − 1 of signed integers, 255 − x of u8; for bool: not. Short for
/// bitwise_not(x).
/// Throws: DTypeError for floating x.
inline Tensor operator~(const Arg& x) { return bitwise_not(x); }

}  // namespace reel
