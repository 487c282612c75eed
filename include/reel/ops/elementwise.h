#pragma once

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/tensor.h>

// Operands broadcast as NumPy's do, and meet in a common dtype as PyTorch's do; plain numbers are weak.
// All throw ShapeError where shapes do not broadcast, and DTypeError where a dtype makes no sense.
// Source: NumPy's semantics; at kinks PyTorch's derivatives.

namespace reel {

/// a + b. For bool: or.
Tensor add(const Arg& a, const Arg& b);
/// a − b. Throws: DTypeError for two bools.
Tensor sub(const Arg& a, const Arg& b);
/// a · b. For bool: and.
Tensor mul(const Arg& a, const Arg& b);
/// a / b; integers give f32.
Tensor div(const Arg& a, const Arg& b);
/// a / b rounded down, as if the quotient were exact. Floating: ±∞ or NaN where b is 0; integers: 0 there, and the least
/// integer by −1 wraps around. No gradient flows: it is 0. Throws: DTypeError for two bools.
Tensor floor_divide(const Arg& a, const Arg& b);
/// a − b ⌊a / b⌋, the remainder with b's sign. Where b is 0: NaN, for integers 0. Derivatives: 1 by a, −⌊a / b⌋ by b.
/// Throws: DTypeError for two bools.
Tensor mod(const Arg& a, const Arg& b);
/// a to the power of b; integers stay integers, and a negative integer power of an integer is 0 unless the base is ±1.
Tensor pow(const Arg& a, const Arg& b);
/// The larger of a and b, NaN if either is. Where they are equal each gets half the gradient.
Tensor maximum(const Arg& a, const Arg& b);
/// The smaller of a and b, NaN if either is. Where they are equal each gets half the gradient.
Tensor minimum(const Arg& a, const Arg& b);
/// The angle of the point (b, a) in (−π, π]; integers give f32. Signed zeros and infinities as in C.
Tensor atan2(const Arg& a, const Arg& b);
/// log(e^a + e^b) without overflow, also at ±∞; integers give f32.
Tensor logaddexp(const Arg& a, const Arg& b);
/// min(max(x, low), high): numbers or tensors, all broadcast; NaN if one is. −∞ as a lower and ∞ as an upper number are
/// no bounds, whatever the dtype: clamp(x, 0) has no upper end, clamp(x, -INFINITY, 1) no lower one. Where low > high the result
/// is high. The gradient flows to x where low ≤ x ≤ high, to low where x < low ≤ high, to high elsewhere, and nowhere
/// for NaN. Throws: DTypeError for bool.
Tensor clamp(const Arg& x, const Arg& low, const Arg& high = std::numeric_limits<double>::infinity());
/// a + weight (b − a), exactly a and b at weights 0 and 1; integers give f32. The weight is a number or a tensor.
/// Source: PyTorch.
Tensor lerp(const Arg& a, const Arg& b, const Arg& weight);

// These keep integers. They throw DTypeError for bool.

/// −x.
Tensor neg(const Arg& x);
/// |x|; of the least integer itself, which wraps around. Its derivative at 0 is 0.
Tensor abs(const Arg& x);
/// −1, 0 or 1; NaN for NaN. Its derivative is 0.
Tensor sign(const Arg& x);
/// x².
Tensor square(const Arg& x);
/// max(x, 0); its derivative at 0 is 0.
Tensor relu(const Arg& x);
/// The next whole number downwards. Its derivative is 0, as that of `ceil` and `round`.
Tensor floor(const Arg& x);
/// The next whole number upwards.
Tensor ceil(const Arg& x);
/// The nearest whole number; halves to the even one.
Tensor round(const Arg& x);

// Integers and bools give f32 from here on.

/// 1 / x.
Tensor reciprocal(const Arg& x);
/// √x; NaN below 0.
Tensor sqrt(const Arg& x);
/// 1 / √x; NaN below 0.
Tensor rsqrt(const Arg& x);
/// e^x.
Tensor exp(const Arg& x);
/// e^x − 1, exact for small x.
Tensor expm1(const Arg& x);
/// Natural logarithm; −∞ at 0, NaN below.
Tensor log(const Arg& x);
/// log(1 + x), exact for small x; −∞ at −1, NaN below.
Tensor log1p(const Arg& x);
/// Logarithm to base 2, exact for powers of two.
Tensor log2(const Arg& x);
/// Sine of an angle in radians, right for any finite x.
Tensor sin(const Arg& x);
/// Cosine of an angle in radians, right for any finite x.
Tensor cos(const Arg& x);
/// Tangent of an angle in radians, right for any finite x.
Tensor tan(const Arg& x);
/// Arc sine in [−π/2, π/2]; NaN outside [−1, 1].
Tensor asin(const Arg& x);
/// Arc cosine in [0, π]; NaN outside [−1, 1].
Tensor acos(const Arg& x);
/// Arc tangent in [−π/2, π/2].
Tensor atan(const Arg& x);
/// Hyperbolic sine.
Tensor sinh(const Arg& x);
/// Hyperbolic cosine.
Tensor cosh(const Arg& x);
/// Hyperbolic tangent.
Tensor tanh(const Arg& x);
/// 1 / (1 + e^−x).
Tensor sigmoid(const Arg& x);
/// The error function, 2/√π ∫₀ˣ e^−t² dt.
Tensor erf(const Arg& x);
/// The inverse of `erf`; ±∞ at ±1, NaN beyond.
Tensor erfinv(const Arg& x);
/// log |Γ(x)|; ∞ at 0 and the negative whole numbers.
Tensor lgamma(const Arg& x);
/// ψ(x), the derivative of `lgamma`; ∓∞ at ±0, NaN at the negative whole numbers. Source: PyTorch.
Tensor digamma(const Arg& x);
/// The derivative of `digamma` of an order in [0, 170], which at order 0 is `digamma` itself; ±∞ at its poles, by the sign
/// to the right of them. Throws: Error for another order. Source: PyTorch.
Tensor polygamma(int order, const Arg& x);

/// A copy in a dtype, x's own too; floating to integer cuts towards zero. The gradient flows between floating dtypes.
Tensor to(const Arg& x, DType dtype);
/// A copy on a device, also where x is there already. The gradient flows back to x's device. A copy from a
/// GPU to the CPU waits for all that this thread has queued there. Throws: DeviceError where there is no such device.
Tensor to(const Arg& x, Device device);

inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
inline Tensor operator-(const Arg& a, const Arg& b) { return sub(a, b); }
inline Tensor operator*(const Arg& a, const Arg& b) { return mul(a, b); }
inline Tensor operator/(const Arg& a, const Arg& b) { return div(a, b); }
inline Tensor operator%(const Arg& a, const Arg& b) { return mod(a, b); }
inline Tensor operator-(const Arg& x) { return neg(x); }

}  // namespace reel
