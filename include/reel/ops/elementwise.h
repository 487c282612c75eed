#pragma once

#include <reel/tensor.h>

// Operands broadcast as NumPy's do, and meet in a common dtype as PyTorch's do; plain numbers are weak.
// All throw ShapeError where shapes do not broadcast, and DTypeError where a dtype makes no sense.

namespace reel {

/// a + b. For bool: or.
Tensor add(const Arg& a, const Arg& b);
/// a − b. Throws: DTypeError for two bools.
Tensor sub(const Arg& a, const Arg& b);
/// a · b. For bool: and.
Tensor mul(const Arg& a, const Arg& b);
/// a / b; integers give f32.
Tensor div(const Arg& a, const Arg& b);
/// a to the power of b; integers stay integers, and a negative integer power of an integer is 0 unless the base is ±1.
Tensor pow(const Arg& a, const Arg& b);
/// −x. Throws: DTypeError for bool.
Tensor neg(const Arg& x);

/// e^x; integers give f32, as for all functions below up to `sigmoid` but `square`.
Tensor exp(const Arg& x);
/// Natural logarithm; NaN below 0.
Tensor log(const Arg& x);
/// √x; NaN below 0.
Tensor sqrt(const Arg& x);
/// x².
Tensor square(const Arg& x);
/// Hyperbolic tangent.
Tensor tanh(const Arg& x);
/// 1 / (1 + e^−x).
Tensor sigmoid(const Arg& x);
/// max(x, 0); its derivative at 0 is 0.
Tensor relu(const Arg& x);

// Comparisons give bool and have no gradient.
Tensor equal(const Arg& a, const Arg& b);
Tensor not_equal(const Arg& a, const Arg& b);
Tensor less(const Arg& a, const Arg& b);
Tensor less_equal(const Arg& a, const Arg& b);
Tensor greater(const Arg& a, const Arg& b);
Tensor greater_equal(const Arg& a, const Arg& b);

/// a where `condition`, a bool tensor, is true, b elsewhere. All three broadcast.
Tensor where(const Arg& condition, const Arg& a, const Arg& b);

/// The values in another dtype; floating to integer cuts towards zero. The gradient flows between floating dtypes.
Tensor to(const Arg& x, DType dtype);

inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
inline Tensor operator-(const Arg& a, const Arg& b) { return sub(a, b); }
inline Tensor operator*(const Arg& a, const Arg& b) { return mul(a, b); }
inline Tensor operator/(const Arg& a, const Arg& b) { return div(a, b); }
inline Tensor operator-(const Arg& x) { return neg(x); }
inline Tensor operator==(const Arg& a, const Arg& b) { return equal(a, b); }
inline Tensor operator!=(const Arg& a, const Arg& b) { return not_equal(a, b); }
inline Tensor operator<(const Arg& a, const Arg& b) { return less(a, b); }
inline Tensor operator<=(const Arg& a, const Arg& b) { return less_equal(a, b); }
inline Tensor operator>(const Arg& a, const Arg& b) { return greater(a, b); }
inline Tensor operator>=(const Arg& a, const Arg& b) { return greater_equal(a, b); }

}  // namespace reel
