#pragma once

#include <limits>
#include <optional>

#include <reel/ops/comparison.h>
#include <reel/tensor.h>

/// \file
/// Elementwise functions. Operands broadcast as NumPy's do, and are combined in a common dtype as PyTorch's are (see
/// `promote`); plain numbers are weak scalars. Beside bf16 and f16, numbers and tensors of rank 0 of other dtypes enter
/// the arithmetic in f32, and only the result is rounded; comparisons, `maximum`, `minimum`, `clamp` and `where` take
/// them as the half to which they round. Functions of one operand that are not said to keep integers give f32 for
/// integers and bools. Derivatives at kinks are PyTorch's, but for `clamp` at its bounds.
///
/// A result has no gaps, and its axes have the order in memory of those of the first operand that has its shape and is not
/// expanded: the result of a transposed tensor is transposed, and `reshape` may copy it. Otherwise it is row-major.

namespace reel {

/// The sum a + b, elementwise; for bool: or.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor add(const Arg& a, const Arg& b);
/// The difference a − b, elementwise.
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
Tensor sub(const Arg& a, const Arg& b);
/// The product a · b, elementwise; for bool: and.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor mul(const Arg& a, const Arg& b);
/// The quotient a / b, elementwise; integers give f32.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor div(const Arg& a, const Arg& b);
/// The quotient a / b rounded down, as if it were exact, elementwise. Floating: ±∞ or NaN where b is 0; integers: 0
/// there, and the least integer by −1 wraps around. The gradient is 0.
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
Tensor floor_divide(const Arg& a, const Arg& b);
/// The remainder a − b ⌊a / b⌋ with b's sign, elementwise. Where b is 0: NaN, for integers 0. Derivatives: 1 with
/// respect to a, −⌊a / b⌋ with respect to b.
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
Tensor mod(const Arg& a, const Arg& b);
/// The remainder a − b trunc(a / b) with a's sign, elementwise, exact. Where b is 0: NaN, for integers 0. Derivatives: 1
/// with respect to a, −trunc(a / b) with respect to b.
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
/// Source: PyTorch's fmod.
Tensor fmod(const Arg& a, const Arg& b);
/// a to the power of b, elementwise; integers stay integers, and a negative integer power of an integer is 0 unless the
/// base is ±1.
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
Tensor pow(const Arg& a, const Arg& b);
/// The larger of a and b, elementwise; NaN if either is. Where they are equal each gets half the gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor maximum(const Arg& a, const Arg& b);
/// The smaller of a and b, elementwise; NaN if either is. Where they are equal each gets half the gradient.
/// Throws: ShapeError unless the shapes broadcast; DTypeError for a number that does not fit the dtype; DeviceError.
Tensor minimum(const Arg& a, const Arg& b);
/// The angle of the point (b, a) in (−π, π], in radians, elementwise; integers give f32. Signed zeros and infinities as
/// in C.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor atan2(const Arg& a, const Arg& b);
/// log(e^a + e^b) without overflow, also at ±∞, elementwise; integers give f32. Where both are −∞ the gradient is 0;
/// where both are +∞ each gets half of it.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
Tensor logaddexp(const Arg& a, const Arg& b);
/// x log y, elementwise: 0 where x is 0 and y is not NaN, whatever log y is; integers give f32. Where x is 0, the
/// derivatives at y ≤ 0 and at ∞ are 0.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's xlogy.
Tensor xlogy(const Arg& x, const Arg& y);
/// min(max(x, low), high), elementwise: numbers or tensors, all broadcast; NaN if one is. −∞ as a lower and ∞ as an
/// upper number are no bounds, whatever the dtype: clamp(x, 0) has no upper end, clamp(x, -INFINITY, 1) no lower one.
/// Where low > high the result is high. The gradient flows to x where low ≤ x ≤ high, to low where x < low ≤ high, to
/// high elsewhere, and nowhere for NaN.
/// Throws: DTypeError for bool and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
Tensor clamp(const Arg& x, const Arg& low, const Arg& high = std::numeric_limits<double>::infinity());
/// Linear interpolation a + weight (b − a), elementwise, exactly a and b at weights 0 and 1; integers give f32. The
/// weight is a number or a tensor.
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
/// Source: PyTorch's lerp.
Tensor lerp(const Arg& a, const Arg& b, const Arg& weight);

/// −x, elementwise. Integers stay integers. Throws: DTypeError for bool.
Tensor neg(const Arg& x);
/// |x|, elementwise; that of the least integer wraps around to itself. The derivative at 0 is 0. Integers stay
/// integers.
/// Throws: DTypeError for bool.
Tensor abs(const Arg& x);
/// The sign of x: −1, 0 or 1, elementwise; NaN for NaN. The derivative is 0. Integers stay integers.
/// Throws: DTypeError for bool.
Tensor sign(const Arg& x);
/// x², elementwise. Integers stay integers. Throws: DTypeError for bool.
Tensor square(const Arg& x);
/// max(x, 0), elementwise; the derivative at 0 is 0. Integers stay integers. Throws: DTypeError for bool.
Tensor relu(const Arg& x);
/// ⌊x⌋, elementwise: the next whole number downwards. The derivative is 0. Integers stay integers.
/// Throws: DTypeError for bool.
Tensor floor(const Arg& x);
/// ⌈x⌉, elementwise: the next whole number upwards. The derivative is 0. Integers stay integers.
/// Throws: DTypeError for bool.
Tensor ceil(const Arg& x);
/// The nearest whole number, elementwise; halves to the even one. The derivative is 0. Integers stay integers.
/// Throws: DTypeError for bool.
Tensor round(const Arg& x);
/// x without its fraction, the nearest whole number towards 0, elementwise. The derivative is 0. Integers stay integers.
/// Throws: DTypeError for bool.
/// Source: NumPy's trunc.
Tensor trunc(const Arg& x);

/// 1 / x, elementwise. Integers and bools give f32.
Tensor reciprocal(const Arg& x);
/// √x, elementwise; NaN below 0. Integers and bools give f32.
Tensor sqrt(const Arg& x);
/// 1 / √x, elementwise; NaN below 0. Integers and bools give f32.
Tensor rsqrt(const Arg& x);
/// e^x, elementwise. Integers and bools give f32.
Tensor exp(const Arg& x);
/// e^x − 1, elementwise, exact for small x. Integers and bools give f32.
Tensor expm1(const Arg& x);
/// 2^x, elementwise, exact for whole numbers. Integers and bools give f32.
/// Source: PyTorch's exp2.
Tensor exp2(const Arg& x);
/// The natural logarithm, elementwise; −∞ at 0, NaN below. Integers and bools give f32.
Tensor log(const Arg& x);
/// log(1 + x), elementwise, exact for small x; −∞ at −1, NaN below. Integers and bools give f32.
Tensor log1p(const Arg& x);
/// The logarithm to base 2, elementwise, exact for powers of two; −∞ at 0, NaN below. Integers and bools give f32.
Tensor log2(const Arg& x);
/// The logarithm to base 10, elementwise; −∞ at 0, NaN below. Integers and bools give f32.
/// Source: PyTorch's log10.
Tensor log10(const Arg& x);
/// The sine of an angle in radians, elementwise, accurate for any finite x. Integers and bools give f32.
Tensor sin(const Arg& x);
/// The cosine of an angle in radians, elementwise, accurate for any finite x. Integers and bools give f32.
Tensor cos(const Arg& x);
/// The tangent of an angle in radians, elementwise, accurate for any finite x. Integers and bools give f32.
Tensor tan(const Arg& x);
/// The arc sine in [−π/2, π/2], in radians, elementwise; NaN outside [−1, 1]. Integers and bools give f32.
Tensor asin(const Arg& x);
/// The arc cosine in [0, π], in radians, elementwise; NaN outside [−1, 1]. Integers and bools give f32.
Tensor acos(const Arg& x);
/// The arc tangent in [−π/2, π/2], in radians, elementwise. Integers and bools give f32.
Tensor atan(const Arg& x);
/// The hyperbolic sine, elementwise. Integers and bools give f32.
Tensor sinh(const Arg& x);
/// The hyperbolic cosine, elementwise. Integers and bools give f32.
Tensor cosh(const Arg& x);
/// The hyperbolic tangent, elementwise. Integers and bools give f32.
Tensor tanh(const Arg& x);
/// The inverse of `sinh`, elementwise. Integers and bools give f32.
/// Source: PyTorch's asinh.
Tensor asinh(const Arg& x);
/// The inverse of `cosh`, at least 0, elementwise; NaN below 1. Integers and bools give f32.
/// Source: PyTorch's acosh.
Tensor acosh(const Arg& x);
/// The inverse of `tanh`, elementwise; ±∞ at ±1, NaN beyond. Integers and bools give f32.
/// Source: PyTorch's atanh.
Tensor atanh(const Arg& x);
/// The logistic sigmoid 1 / (1 + e^−x), elementwise. Integers and bools give f32.
Tensor sigmoid(const Arg& x);
/// Options of `logit`.
struct LogitOptions {
  /// ε in [0, 1/2]: x is clamped to [ε, 1 − ε] first. Nothing (default): x is taken as it is.
  std::optional<double> epsilon = {};
};

/// log(x / (1 − x)), the inverse of `sigmoid`, elementwise; ∓∞ at 0 and 1, NaN outside of [0, 1]. Integers and bools
/// give f32.
/// Throws: Error for ε outside [0, 1/2].
/// Source: PyTorch's logit.
Tensor logit(const Arg& x, LogitOptions options = {});
/// sin(πx) / (πx), elementwise, 1 at 0. Integers and bools give f32.
/// Source: PyTorch's sinc.
Tensor sinc(const Arg& x);
/// The error function 2/√π ∫₀ˣ e^−t² dt, elementwise. Integers and bools give f32.
Tensor erf(const Arg& x);
/// The complement 1 − erf(x) of the error function, elementwise, accurate also where it is tiny. Integers and bools give
/// f32.
/// Source: PyTorch's erfc.
Tensor erfc(const Arg& x);
/// The inverse of `erf`, elementwise; ±∞ at ±1, NaN beyond. Integers and bools give f32.
Tensor erfinv(const Arg& x);
/// log |Γ(x)|, elementwise; ∞ at 0 and the negative whole numbers. Integers and bools give f32.
Tensor lgamma(const Arg& x);
/// ψ(x), the derivative of `lgamma`, elementwise; ∓∞ at ±0, NaN at the negative whole numbers. Integers and bools give
/// f32.
/// Source: PyTorch's digamma.
Tensor digamma(const Arg& x);
/// The polygamma function: the derivative of `digamma` of an order in [0, 170], which at order 0 is `digamma` itself,
/// elementwise; ±∞ at its poles, with the sign to the right of them. Integers and bools give f32.
/// Throws: Error for another order.
/// Source: PyTorch's polygamma.
Tensor polygamma(int order, const Arg& x);

/// The modified Bessel function of the first kind of order 0, Σ_k (x/2)^2k / k!², elementwise. Integers and bools give
/// f32.
/// Source: PyTorch's i0.
Tensor i0(const Arg& x);
/// The modified Bessel function of the first kind of order 1, Σ_k (x/2)^(2k+1) / (k! (k+1)!), which is the derivative of
/// `i0`, elementwise. Integers and bools give f32.
/// Source: PyTorch's special.i1.
Tensor i1(const Arg& x);

/// Options of `nan_to_num`.
struct NanToNumOptions {
  double nan = 0;                                ///< what replaces NaN; default 0
  std::optional<double> positive_infinity = {};  ///< what replaces ∞; nothing (default): the dtype's largest number
  std::optional<double> negative_infinity = {};  ///< what replaces −∞; nothing (default): the dtype's least number
};

/// x with NaN and infinities replaced by numbers, elementwise; the gradient is 0 there. Integers and bools stay as they
/// are.
/// Source: PyTorch's nan_to_num.
Tensor nan_to_num(const Arg& x, NanToNumOptions options = {});

/// A copy of x in the given dtype, also where x has it already; floating to integer cuts towards zero. The gradient
/// flows between floating dtypes.
Tensor to(const Arg& x, DType dtype);
/// A copy of x on a device, also where x is there already. The gradient flows back to x's device. A copy from a GPU to
/// the CPU waits for all that this thread has queued there.
/// Throws: DeviceError if there is no such device.
Tensor to(const Arg& x, Device device);

/// The sum a + b, elementwise; for bool: or. Short for add(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator+(const Arg& a, const Arg& b) { return add(a, b); }
/// The difference a − b, elementwise. Short for sub(a, b).
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
inline Tensor operator-(const Arg& a, const Arg& b) { return sub(a, b); }
/// The product a · b, elementwise; for bool: and. Short for mul(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator*(const Arg& a, const Arg& b) { return mul(a, b); }
/// The quotient a / b, elementwise; integers give f32. Short for div(a, b).
/// Throws: ShapeError unless the shapes broadcast; DeviceError for operands on different devices.
inline Tensor operator/(const Arg& a, const Arg& b) { return div(a, b); }
/// The remainder a − b ⌊a / b⌋ with b's sign, elementwise. Where b is 0: NaN, for integers 0. Derivatives: 1 with
/// respect to a, −⌊a / b⌋ with respect to b. Short for mod(a, b).
/// Throws: DTypeError for two bools and for a number that does not fit the dtype; ShapeError unless the shapes broadcast;
/// DeviceError for operands on different devices.
inline Tensor operator%(const Arg& a, const Arg& b) { return mod(a, b); }
/// −x, elementwise. Integers stay integers. Short for neg(x). Throws: DTypeError for bool.
inline Tensor operator-(const Arg& x) { return neg(x); }

}  // namespace reel
