#pragma once

#include <initializer_list>
#include <limits>
#include <span>

#include <reel/indexing.h>
#include <reel/ops/index.h>
#include <reel/tensor.h>

// Functions that overwrite x, which keeps its shape, dtype and strides, and return it. Operands broadcast to x, never x
// to them, and may share elements with x: what counts are their values before. Results may be of a higher dtype than x,
// and are converted, but not of a higher kind: an integer x takes no floating results.
//
// On a tape, what was recorded with the old values stays as it was, x stands for the new ones, and gradients flow to
// both operands. Other tensors that share x's elements see the new values. Ops that have a gradient refuse them while the
// tape records, unless views are made of x anew; ops without one (y > 5, argmax), printing, and what runs under NoRecord
// read them as they are.
// A part x(…) of a tensor may be given in place of x: then the whole tensor stands for its new values.
//
// All throw Error for an undefined x; ShapeError for an operand that does not broadcast to x, or if x repeats elements;
// DTypeError for results that x cannot hold; TapeError, while this thread records, for a parameter (overwrite it under
// NoRecord), a watched tensor, or one of another thread's tape. What throws has changed nothing.

namespace reel {

/// What an in-place function overwrites: a tensor, or a part of one, and the place of the call. Functions take it;
/// nothing stores it.
class Destination {
 public:
  Destination(const Tensor& x, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&x), location_{file, line} {}
  Destination(const Indexed& part, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : tensor_(&part), part_(&part), location_{file, line} {}
  Destination(const Tensor& x, Location where) : tensor_(&x), location_(where) {}
  Destination(const Indexed& part, Location where) : tensor_(&part), part_(&part), location_(where) {}

  const Tensor& tensor() const { return *tensor_; }
  /// Null if it is a whole tensor.
  const Indexed* part() const { return part_; }
  Location location() const { return location_; }

 private:
  const Tensor* tensor_;
  const Indexed* part_ = nullptr;
  Location location_;
};

/// x = x + y. For bool: or.
Tensor add_(const Destination& x, const Arg& y);
/// x = x − y. Throws: DTypeError for two bools.
Tensor sub_(const Destination& x, const Arg& y);
/// x = x y. For bool: and. On a tape, if y's gradient is wanted, x is copied first.
Tensor mul_(const Destination& x, const Arg& y);
/// x = x / y. Throws: DTypeError for an integer x.
Tensor div_(const Destination& x, const Arg& y);

/// x = y, converted to x's dtype, whichever it is.
Tensor copy_(const Destination& x, const Arg& y);
/// x = value, a number or a tensor of rank 0, converted as by copy_.
Tensor fill_(const Destination& x, const Arg& value);
/// x = 0.
Tensor zero_(const Destination& x);
/// x = min(max(x, low), high), as clamp.
Tensor clamp_(const Destination& x, const Arg& low, const Arg& high = std::numeric_limits<double>::infinity());
/// x = value, as of masked_fill, where the mask is true.
Tensor masked_fill_(const Destination& x, const Arg& mask, const Arg& value);
/// x[i[j], k[j], …] = values[j], as index_put.
Tensor index_put_(const Destination& x, std::span<const Tensor> indices, const Arg& values,
                  IndexPutOptions options = {});
inline Tensor index_put_(const Destination& x, std::initializer_list<Tensor> indices, const Arg& values,
                         IndexPutOptions options = {}) {
  return index_put_(x, std::span(indices.begin(), indices.size()), values, options);
}

// `x += y` is add_(x, y), also for a part: `x(1) += y`.
inline void operator+=(Tensor& x, const Arg& y) { add_({x, y.location()}, y); }
inline void operator-=(Tensor& x, const Arg& y) { sub_({x, y.location()}, y); }
inline void operator*=(Tensor& x, const Arg& y) { mul_({x, y.location()}, y); }
inline void operator/=(Tensor& x, const Arg& y) { div_({x, y.location()}, y); }
inline void operator+=(const Indexed& x, const Arg& y) { add_({x, y.location()}, y); }
inline void operator-=(const Indexed& x, const Arg& y) { sub_({x, y.location()}, y); }
inline void operator*=(const Indexed& x, const Arg& y) { mul_({x, y.location()}, y); }
inline void operator/=(const Indexed& x, const Arg& y) { div_({x, y.location()}, y); }

}  // namespace reel
