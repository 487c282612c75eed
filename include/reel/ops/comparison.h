#pragma once

#include <reel/tensor.h>

// Ops that give bools or take them. Operands broadcast and meet in a common dtype as those of elementwise.h.

namespace reel {

// Comparisons have no gradient; with NaN all are false but `not_equal`.
Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);

// Of any dtype: what is not 0 counts as true, NaN too. No gradient.
Tensor logical_and(const Arg& a, const Arg& b);
Tensor logical_or(const Arg& a, const Arg& b);
Tensor logical_xor(const Arg& a, const Arg& b);
Tensor logical_not(const Arg& x);

// Of any dtype; integers and bools are all finite. No gradient.
Tensor isnan(const Arg& x);
Tensor isinf(const Arg& x);
Tensor isfinite(const Arg& x);

/// a where `condition`, a bool tensor, is true, b elsewhere. All three broadcast.
/// Throws: DTypeError unless the condition is bool; ShapeError.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);

inline Tensor operator==(const Arg& a, const Arg& b) { return equal(a, b); }
inline Tensor operator!=(const Arg& a, const Arg& b) { return not_equal(a, b); }
inline Tensor operator<(const Arg& a, const Arg& b) { return less(a, b); }
inline Tensor operator<=(const Arg& a, const Arg& b) { return less_equal(a, b); }
inline Tensor operator>(const Arg& a, const Arg& b) { return greater(a, b); }
inline Tensor operator>=(const Arg& a, const Arg& b) { return greater_equal(a, b); }
inline Tensor operator!(const Arg& x) { return logical_not(x); }

}  // namespace reel
