#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

// Highway's vector and tag as one value with operators, which the formulas take for V. This header is compiled once
// per instruction set.

namespace reel::detail {
inline namespace REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Vector {
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

  friend Vector operator+(Vector a, Vector b) { return hn::Add(a.raw, b.raw); }
  friend Vector operator-(Vector a, Vector b) { return hn::Sub(a.raw, b.raw); }
  friend Vector operator*(Vector a, Vector b) { return hn::Mul(a.raw, b.raw); }
  friend Vector operator/(Vector a, Vector b) { return hn::Div(a.raw, b.raw); }
  friend Vector operator-(Vector a) { return hn::Neg(a.raw); }
  friend auto operator<(Vector a, Vector b) { return hn::Lt(a.raw, b.raw); }
  friend auto operator>(Vector a, Vector b) { return hn::Gt(a.raw, b.raw); }
  friend auto operator==(Vector a, Vector b) { return hn::Eq(a.raw, b.raw); }
};

template <class M, class T>
Vector<T> select(M condition, Vector<T> yes, Vector<T> no) {
  return hn::IfThenElse(condition, yes.raw, no.raw);
}

template <class T>
Vector<T> sqrt(Vector<T> x) {
  return hn::Sqrt(x.raw);
}

// Larger of two, NaN if either is.
template <class T>
Vector<T> maximum(Vector<T> a, Vector<T> b) {
  return select(a > b, a, select(a == a, b, a));
}

// Highway's exp, log and tanh leave infinities and NaN undefined.
template <class T>
Vector<T> exp(Vector<T> x) {
  using V = Vector<T>;
  constexpr double overflow = sizeof(T) == 4 ? 88.72283935546875 : 709.782712893384;
  V inside = select(x < V(overflow), x, V(overflow));
  V y = hn::Exp(typename V::Tag(), inside.raw);
  y = select(x > V(overflow), V(std::numeric_limits<double>::infinity()), y);
  return select(x == x, y, x);
}

template <class T>
Vector<T> log(Vector<T> x) {
  using V = Vector<T>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  V y = hn::Log(typename V::Tag(), x.raw);
  y = select(x < V(0), V(std::numeric_limits<double>::quiet_NaN()), y);
  y = select(x == V(0), V(-infinity), y);
  y = select(x == V(infinity), x, y);
  return select(x == x, y, x);
}

template <class T>
Vector<T> tanh(Vector<T> x) {
  using V = Vector<T>;
  constexpr double saturated = sizeof(T) == 4 ? 10 : 20;
  V inside = select(x > V(saturated), V(saturated), select(x < V(-saturated), V(-saturated), x));
  V y = hn::Tanh(typename V::Tag(), inside.raw);
  return select(x == x, y, x);
}

/// A function that Highway lacks, lane by lane.
template <class T, class F>
Vector<T> by_lane(Vector<T> a, Vector<T> b, F f) {
  T left[Vector<T>::lanes], right[Vector<T>::lanes];
  a.store(left);
  b.store(right);
  for (int i = 0; i < Vector<T>::lanes; ++i) left[i] = f(left[i], right[i]);
  return Vector<T>::load(left);
}

template <class T>
Vector<T> pow(Vector<T> a, Vector<T> b) {
  return by_lane(a, b, [](T x, T y) { return std::pow(x, y); });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
