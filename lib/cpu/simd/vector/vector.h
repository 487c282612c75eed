#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include <hwy/highway.h>

// Highway's vector and tag as one value with operators, the type V of the formulas. This header is compiled once per
// instruction set.

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Vector {
  using Element = T;
  using Tag = hn::ScalableTag<T>;
  using Raw = hn::Vec<Tag>;
  static constexpr std::int64_t lanes = HWY_LANES(T);
  Raw raw;

  Vector(Raw raw) : raw(raw) {}
  explicit Vector(double number) : raw(hn::Set(Tag(), static_cast<T>(number))) {}
  explicit Vector(int number) : Vector(static_cast<double>(number)) {}
  static Vector load(const T* from) { return hn::LoadU(Tag(), from); }
  static Vector repeat(T value) { return hn::Set(Tag(), value); }
  void store(T* to) const { hn::StoreU(raw, Tag(), to); }
  /// Stores to an aligned address, past the caches; see streaming.h.
  void stream(T* to) const { hn::Stream(raw, Tag(), to); }
  /// The first `count` elements; zeros behind them.
  static Vector load(const T* from, std::int64_t count) {
    if constexpr (masks_are_safe) return hn::MaskedLoad(first(count), Tag(), from);
    T some[lanes] = {};
    std::memcpy(some, from, static_cast<std::size_t>(count) * sizeof(T));
    return load(some);
  }
  void store(T* to, std::int64_t count) const {
    if constexpr (masks_are_safe) return hn::BlendedStore(raw, first(count), Tag(), to);
    T some[lanes];
    store(some);
    std::memcpy(to, some, static_cast<std::size_t>(count) * sizeof(T));
  }

  friend Vector operator+(Vector a, Vector b) { return hn::Add(a.raw, b.raw); }
  friend Vector operator-(Vector a, Vector b) { return hn::Sub(a.raw, b.raw); }
  friend Vector operator*(Vector a, Vector b) { return hn::Mul(a.raw, b.raw); }
  friend Vector operator/(Vector a, Vector b) { return hn::Div(a.raw, b.raw); }
  friend Vector operator-(Vector a) { return hn::Neg(a.raw); }
  friend auto operator<(Vector a, Vector b) { return hn::Lt(a.raw, b.raw); }
  friend auto operator>(Vector a, Vector b) { return hn::Gt(a.raw, b.raw); }
  friend auto operator<=(Vector a, Vector b) { return hn::Le(a.raw, b.raw); }
  friend auto operator>=(Vector a, Vector b) { return hn::Ge(a.raw, b.raw); }
  friend auto operator==(Vector a, Vector b) { return hn::Eq(a.raw, b.raw); }

 private:
  // True if elements that a mask excludes are not accessed. AVX2 has masks for elements of four bytes and more.
  static constexpr bool masks_are_safe = !HWY_MEM_OPS_MIGHT_FAULT || (HWY_TARGET <= HWY_AVX2 && sizeof(T) >= 4);
  static auto first(std::int64_t count) { return hn::FirstN(Tag(), static_cast<std::size_t>(count)); }
};

template <class M, class T>
Vector<T> select(M condition, Vector<T> yes, Vector<T> no) {
  return hn::IfThenElse(condition, yes.raw, no.raw);
}

template <class T>
Vector<T> sqrt(Vector<T> x) {
  return hn::Sqrt(x.raw);
}

template <class T>
Vector<T> rsqrt(Vector<T> x) {
  return Vector<T>(1) / sqrt(x);
}

template <class T>
Vector<T> abs(Vector<T> x) {
  return hn::Abs(x.raw);
}

/// A whole number to which x was rounded, with x's sign also if it is 0: Highway's scalar target loses it there.
template <class T>
Vector<T> rounded_from(Vector<T> x, Vector<T> whole) {
#if HWY_TARGET == HWY_SCALAR
  return hn::CopySign(whole.raw, x.raw);
#else
  static_cast<void>(x);
  return whole;
#endif
}

template <class T>
Vector<T> floor(Vector<T> x) {
  return rounded_from<T>(x, hn::Floor(x.raw));
}

template <class T>
Vector<T> ceil(Vector<T> x) {
  return rounded_from<T>(x, hn::Ceil(x.raw));
}

/// Rounds halves to even.
template <class T>
Vector<T> nearbyint(Vector<T> x) {
  return rounded_from<T>(x, hn::Round(x.raw));
}

template <class T>
Vector<T> copysign(Vector<T> magnitude, Vector<T> sign) {
  return hn::CopySign(magnitude.raw, sign.raw);
}

inline constexpr bool multiply_add_is_fused = HWY_TARGET <= HWY_AVX2;

/// a b + c, rounded once where the processor can.
template <class T>
Vector<T> multiply_add(Vector<T> a, Vector<T> b, Vector<T> c) {
  return hn::MulAdd(a.raw, b.raw, c.raw);
}

/// c₀ + c₁ x + c₂ x² + …
template <class T, std::size_t n>
Vector<T> polynomial(Vector<T> x, const double (&coefficients)[n]) {
  Vector<T> sum(coefficients[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = multiply_add(sum, x, Vector<T>(coefficients[i]));
  return sum;
}

// The larger of two, NaN if either is.
template <class T>
Vector<T> maximum(Vector<T> a, Vector<T> b) {
  return select(a > b, a, select(a == a, b, a));
}

/// Applies a function that Highway lacks, lane by lane.
template <class T, class F>
Vector<T> by_lane(Vector<T> x, F f) {
  T values[Vector<T>::lanes];
  x.store(values);
  for (T& value : values) value = f(value);
  return Vector<T>::load(values);
}

template <class T, class F>
Vector<T> by_lane(Vector<T> a, Vector<T> b, F f) {
  T left[Vector<T>::lanes], right[Vector<T>::lanes];
  a.store(left);
  b.store(right);
  for (int i = 0; i < Vector<T>::lanes; ++i) left[i] = f(left[i], right[i]);
  return Vector<T>::load(left);
}

/// `fast` where `good` is true, else f of the lane.
template <class M, class T, class F>
Vector<T> patched(M good, Vector<T> fast, Vector<T> x, F f) {
  if (hn::AllTrue(typename Vector<T>::Tag(), good)) [[likely]]
    return fast;
  return select(good, fast, by_lane(x, f));
}

template <class M, class T, class F>
Vector<T> patched(M good, Vector<T> fast, Vector<T> a, Vector<T> b, F f) {
  if (hn::AllTrue(typename Vector<T>::Tag(), good)) [[likely]]
    return fast;
  return select(good, fast, by_lane(a, b, f));
}

/// Two steps of Newton's method take half the time of a root and a quotient.
inline Vector<float> rsqrt(Vector<float> x) {
  using V = Vector<float>;
  V y = hn::ApproximateReciprocalSqrt(x.raw), half(0.5), one(1);
  for (int step = 0; step < 2; ++step) y = multiply_add(y * half, multiply_add(-(x * y), y, one), y);
  auto ordinary = hn::And(x >= V(0x1p-100), x <= V(0x1p100));
  if (hn::AllTrue(V::Tag(), ordinary)) [[likely]]
    return y;
  return select(ordinary, y, one / sqrt(x));
}

/// Joins the lanes of a vector by halves: lane j with lane j + lanes / 2, and so on. `join` takes two vectors of the compiler's
/// own, or two numbers.
template <class T, int lanes, class Join>
struct VectorHalves {
  typedef T Raw __attribute__((vector_size(lanes * sizeof(T))));
  template <int... i>
  static auto halves_joined(Raw v, Join join, std::integer_sequence<int, i...>) {
    return join(__builtin_shufflevector(v, v, i...), __builtin_shufflevector(v, v, (i + lanes / 2)...));
  }
  static T joined(Raw v, Join join) {
    if constexpr (lanes == 2)
      return join(v[0], v[1]);
    else
      return VectorHalves<T, lanes / 2, Join>::joined(
          halves_joined(v, join, std::make_integer_sequence<int, lanes / 2>()), join);
  }
};

template <class T, class Join>
T join_lanes(Vector<T> v, Join join) {
  constexpr int lanes = static_cast<int>(Vector<T>::lanes);
  T each[lanes];
  v.store(each);
  if constexpr (lanes == 1) {
    return each[0];
  } else {
    typename VectorHalves<T, lanes, Join>::Raw raw;
    std::memcpy(&raw, each, sizeof(raw));
    return VectorHalves<T, lanes, Join>::joined(raw, join);
  }
}

template <class T>
T sum_of_lanes(Vector<T> v) {
  return join_lanes(v, [](auto a, auto b) { return static_cast<decltype(a)>(a + b); });
}

// Computes f32 by way of f64, for functions that lose too many digits otherwise: both halves of a vector, or its single
// element. For a vector of one element Highway has no halves, hence the dependent names.

using HalfTag = hn::Rebind<float, hn::ScalableTag<double>>;

template <class V>
inline constexpr bool has_halves = V::lanes != Vector<double>::lanes;

template <class V>
Vector<double> lower_half(V x) {
  if constexpr (has_halves<V>)
    return hn::PromoteTo(hn::ScalableTag<double>(), LowerHalf(HalfTag(), x.raw));
  else
    return hn::PromoteTo(hn::ScalableTag<double>(), x.raw);
}

template <class V>
Vector<double> upper_half(V x) {
  return hn::PromoteTo(hn::ScalableTag<double>(), UpperHalf(HalfTag(), x.raw));
}

template <class V>
V joined(Vector<double> lower, Vector<double> upper) {
  return Combine(typename V::Tag(), hn::DemoteTo(HalfTag(), upper.raw), hn::DemoteTo(HalfTag(), lower.raw));
}

// For one element. Highway's scalar target would turn an infinity into the largest float.
template <class V>
V narrowed(Vector<double> x) {
  return V::repeat(static_cast<float>(hn::GetLane(x.raw)));
}

template <class V, class F>
V in_double(V x, F f) {
  if constexpr (has_halves<V>)
    return joined<V>(f(lower_half(x)), f(upper_half(x)));
  else
    return narrowed<V>(f(lower_half(x)));
}

template <class V, class F>
V in_double(V a, V b, F f) {
  if constexpr (has_halves<V>)
    return joined<V>(f(lower_half(a), lower_half(b)), f(upper_half(a), upper_half(b)));
  else
    return narrowed<V>(f(lower_half(a), lower_half(b)));
}

}  // namespace reel::detail::inline REEL_TARGET
