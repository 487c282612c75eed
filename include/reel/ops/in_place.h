#pragma once

#include <initializer_list>
#include <limits>
#include <span>

#include <reel/indexing.h>
#include <reel/ops/index.h>
#include <reel/tensor.h>

/// \file
/// Functions that overwrite x, which keeps its shape, dtype and strides, and return it. Operands broadcast to x, never
/// x to them, and may share elements with x: their values before the call are used. Results may be of a higher dtype
/// than x, and are converted, but not of a higher kind: an integer x takes no floating results.
///
/// On a tape, what was recorded with the old values stays as it was, x stands for the new ones, and gradients flow to
/// both operands. Other tensors that share x's elements see the new values. Ops that have a gradient refuse them while
/// the tape records, unless views are made of x anew; ops without one (y > 5, argmax), printing, and ops under NoRecord
/// read them as they are. A part x(…) of a tensor may be given in place of x: then the whole tensor stands for its new
/// values. A part that masks or tensors of indices select is a copy, which is overwritten and then written to x.
///
/// All throw Error for an undefined x; ShapeError for an operand that does not broadcast to x, or if x repeats
/// elements; DTypeError for results that x cannot hold; DeviceError for operands on different devices; TapeError, while
/// this thread records, for a parameter (overwrite it under NoRecord), a watched tensor, or one of another thread's
/// tape. After an exception x is unchanged.

namespace reel {

/// The operand that an in-place function overwrites: a tensor, or a part of one, with the location of the call.
/// Functions take it as a parameter; it is never stored.
class Destination {
 public:
  /// A whole tensor, with the location of the caller.
  Destination(const Tensor& x, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&x), location_{file, line} {}
  /// A part x(…) of a tensor, with the location of the caller.
  Destination(const Indexed& part, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&part), part_(&part), location_{file, line} {}
  /// A whole tensor, with the location of another call.
  Destination(const Tensor& x, Location where) : tensor_(&x), location_(where) {}
  /// A part x(…) of a tensor, with the location of another call.
  Destination(const Indexed& part, Location where) : tensor_(&part), part_(&part), location_(where) {}

  /// The tensor that is overwritten; the view, if a part is.
  const Tensor& tensor() const { return *tensor_; }
  /// The part; null for a whole tensor.
  const Indexed* part() const { return part_; }
  /// The caller's location.
  Location location() const { return location_; }

 private:
  const Tensor* tensor_;
  const Indexed* part_ = nullptr;
  Location location_;
};

/// x = x + y, elementwise, in place; for bool: or. Returns x.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
Tensor add_(const Destination& x, const Arg& y);
/// x = x − y, elementwise, in place. Returns x.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for two bools; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter
/// or a watched tensor.
Tensor sub_(const Destination& x, const Arg& y);
/// x = x y, elementwise, in place; for bool: and. Returns x. On a tape, if y's gradient is wanted, x is copied first.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
Tensor mul_(const Destination& x, const Arg& y);
/// x = x / y, elementwise, in place. Returns x.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for an integer x; DeviceError for operands on different devices; TapeError, while this thread records, for a
/// parameter or a watched tensor.
Tensor div_(const Destination& x, const Arg& y);

/// x = y, converted to x's dtype, whichever it is, in place. Returns x.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError for a plain integer that x cannot
/// hold; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a
/// watched tensor.
Tensor copy_(const Destination& x, const Arg& y);
/// x = value, a number or a tensor of rank 0, converted to x's dtype, in place. Returns x.
/// Throws: ShapeError for a value with axes, or if x repeats elements; DTypeError for a plain integer that x cannot
/// hold; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a
/// watched tensor.
Tensor fill_(const Destination& x, const Arg& value);
/// x = 0, in place. Returns x.
/// Throws: ShapeError if x repeats elements; TapeError, while this thread records, for a parameter or a watched tensor.
Tensor zero_(const Destination& x);
/// x = min(max(x, low), high), elementwise, in place: numbers or tensors; NaN if one is. −∞ as a lower and ∞ as an
/// upper number are no bounds. Where low > high the result is high. Returns x.
/// Throws: ShapeError unless both bounds broadcast to x, or if x repeats elements; DTypeError if x cannot hold the
/// results, and for bool; DeviceError for operands on different devices; TapeError, while this thread records, for a
/// parameter or a watched tensor.
Tensor clamp_(const Destination& x, const Arg& low, const Arg& high = std::numeric_limits<double>::infinity());
/// x = value, a number or a tensor of rank 0, where the bool mask is true, in place. Returns x.
/// Throws: ShapeError unless the mask broadcasts to x, for a value with axes, or if x repeats elements; DTypeError
/// unless the mask is bool and x can hold the value; DeviceError for operands on different devices; TapeError, while
/// this thread records, for a parameter or a watched tensor.
Tensor masked_fill_(const Destination& x, const Arg& mask, const Arg& value);
/// x[i[j], k[j], …] = values[j], for one tensor of indices per leading axis, or += with `.accumulate`, in place: the
/// indices broadcast together to the shape of j, and the values to that shape and the remaining axes. The last of several
/// values for one position, in row-major order, is taken. Returns x.
/// Throws: IndexError for an index out of range, and for no indices or more than axes; ShapeError for shapes that do
/// not fit, or if x repeats elements; DTypeError for indices other than i32 or i64, and for values of another dtype
/// than x; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a
/// watched tensor.
Tensor index_put_(const Destination& x, std::span<const Tensor> indices, const Arg& values,
                  IndexPutOptions options = {});
/// x[i[j], k[j], …] = values[j], for one tensor of indices per leading axis, or += with `.accumulate`, in place: the
/// indices broadcast together to the shape of j, and the values to that shape and the remaining axes. The last of several
/// values for one position, in row-major order, is taken. Returns x.
/// Throws: IndexError for an index out of range, and for no indices or more than axes; ShapeError for shapes that do
/// not fit, or if x repeats elements; DTypeError for indices other than i32 or i64, and for values of another dtype
/// than x; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a
/// watched tensor.
inline Tensor index_put_(const Destination& x, std::initializer_list<Tensor> indices, const Arg& values,
                         IndexPutOptions options = {}) {
  return index_put_(x, std::span(indices.begin(), indices.size()), values, options);
}

/// x = x + y, elementwise, in place; for bool: or. Short for add_(x, y).
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
inline void operator+=(Tensor& x, const Arg& y) { add_({x, y.location()}, y); }
/// x = x − y, elementwise, in place. Short for sub_(x, y).
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for two bools; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter
/// or a watched tensor.
inline void operator-=(Tensor& x, const Arg& y) { sub_({x, y.location()}, y); }
/// x = x y, elementwise, in place; for bool: and. Short for mul_(x, y). On a tape, if y's gradient is wanted, x is
/// copied first.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
inline void operator*=(Tensor& x, const Arg& y) { mul_({x, y.location()}, y); }
/// x = x / y, elementwise, in place. Short for div_(x, y).
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for an integer x; DeviceError for operands on different devices; TapeError, while this thread records, for a
/// parameter or a watched tensor.
inline void operator/=(Tensor& x, const Arg& y) { div_({x, y.location()}, y); }
/// x = x + y, elementwise, in place; for bool: or. Short for add_(x, y), where x is a part such as x(1) of a tensor.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
inline void operator+=(const Indexed& x, const Arg& y) { add_({x, y.location()}, y); }
/// x = x − y, elementwise, in place. Short for sub_(x, y), where x is a part such as x(1) of a tensor.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for two bools; DeviceError for operands on different devices; TapeError, while this thread records, for a parameter
/// or a watched tensor.
inline void operator-=(const Indexed& x, const Arg& y) { sub_({x, y.location()}, y); }
/// x = x y, elementwise, in place; for bool: and. Short for mul_(x, y), where x is a part such as x(1) of a tensor. On
/// a tape, if y's gradient is wanted, x is copied first.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results;
/// DeviceError for operands on different devices; TapeError, while this thread records, for a parameter or a watched
/// tensor.
inline void operator*=(const Indexed& x, const Arg& y) { mul_({x, y.location()}, y); }
/// x = x / y, elementwise, in place. Short for div_(x, y), where x is a part such as x(1) of a tensor.
/// Throws: ShapeError unless y broadcasts to x, or if x repeats elements; DTypeError if x cannot hold the results, and
/// for an integer x; DeviceError for operands on different devices; TapeError, while this thread records, for a
/// parameter or a watched tensor.
inline void operator/=(const Indexed& x, const Arg& y) { div_({x, y.location()}, y); }

}  // namespace reel
