#include <cstring>
#include <limits>
#include <type_traits>

#include "../core/dispatch.h"
#include "../core/iteration.h"
#include "../ops/formulas.h"
#include "instruction_set.h"
#include "vector.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Every floating element goes through the vector formula, whatever its place and stride: where vectors cannot be loaded
// directly they are gathered. So a value never depends on the layout.

template <class T>
Vector<T> gather(const T* from, std::int64_t stride, std::int64_t count) {
  T lanes[Vector<T>::lanes] = {};
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i * stride];
  return Vector<T>::load(lanes);
}

template <class T>
void scatter(Vector<T> values, T* to, std::int64_t stride, std::int64_t count) {
  T lanes[Vector<T>::lanes];
  values.store(lanes);
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] = lanes[i];
}

template <class F, class T>
void floating_row(F f, T* out, std::int64_t out_step, const T* x, std::int64_t x_step, std::int64_t n) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t i = 0;
  if (out_step == 1 && x_step == 1)
    for (; i + lanes <= n; i += lanes) f(Vector<T>::load(x + i)).store(out + i);
  for (; i < n; i += lanes) {
    std::int64_t count = n - i < lanes ? n - i : lanes;
    scatter(f(gather(x + i * x_step, x_step, count)), out + i * out_step, out_step, count);
  }
}

template <class F, class T>
void floating_row(F f, T* out, std::int64_t out_step, const T* a, std::int64_t a_step, const T* b, std::int64_t b_step,
                  std::int64_t n) {
  constexpr std::int64_t lanes = Vector<T>::lanes;
  std::int64_t i = 0;
  if (out_step == 1) {
    if (a_step == 1 && b_step == 1) {
      for (; i + lanes <= n; i += lanes) f(Vector<T>::load(a + i), Vector<T>::load(b + i)).store(out + i);
    } else if (a_step == 1 && b_step == 0) {
      auto every = Vector<T>::repeat(*b);
      for (; i + lanes <= n; i += lanes) f(Vector<T>::load(a + i), every).store(out + i);
    } else if (a_step == 0 && b_step == 1) {
      auto every = Vector<T>::repeat(*a);
      for (; i + lanes <= n; i += lanes) f(every, Vector<T>::load(b + i)).store(out + i);
    }
  }
  for (; i < n; i += lanes) {
    std::int64_t count = n - i < lanes ? n - i : lanes;
    scatter(f(gather(a + i * a_step, a_step, count), gather(b + i * b_step, b_step, count)), out + i * out_step,
            out_step, count);
  }
}

// The shortest way, for operands of one shape that lie in order.
template <class F, class T>
void contiguous_row(F f, T* out, const T* a, const T* b, std::int64_t n) {
  using V = Vector<T>;
  constexpr std::int64_t lanes = V::lanes;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    V first = f(V::load(a + i), V::load(b + i));
    V second = f(V::load(a + i + lanes), V::load(b + i + lanes));
    V third = f(V::load(a + i + 2 * lanes), V::load(b + i + 2 * lanes));
    V fourth = f(V::load(a + i + 3 * lanes), V::load(b + i + 3 * lanes));
    first.store(out + i);
    second.store(out + i + lanes);
    third.store(out + i + 2 * lanes);
    fourth.store(out + i + 3 * lanes);
  }
  if (i < n) floating_row(f, out + i, 1, a + i, 1, b + i, 1, n - i);
}

constexpr std::int64_t block = 256;

// The halves are widened block by block.
template <class F, class T>
void half_row(F f, T* out, std::int64_t out_step, const T* x, std::int64_t x_step, std::int64_t n) {
  float wide[block];
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for (std::int64_t i = 0; i < count; ++i) wide[i] = x[(start + i) * x_step];
    floating_row(f, wide, 1, wide, 1, count);
    for (std::int64_t i = 0; i < count; ++i) out[(start + i) * out_step] = T(wide[i]);
  }
}

template <class F, class T>
void half_row(F f, T* out, std::int64_t out_step, const T* a, std::int64_t a_step, const T* b, std::int64_t b_step,
              std::int64_t n) {
  float left[block], right[block];
  for (std::int64_t start = 0; start < n; start += block) {
    std::int64_t count = n - start < block ? n - start : block;
    for (std::int64_t i = 0; i < count; ++i) {
      left[i] = a[(start + i) * a_step];
      right[i] = b[(start + i) * b_step];
    }
    floating_row(f, left, 1, left, 1, right, 1, count);
    for (std::int64_t i = 0; i < count; ++i) out[(start + i) * out_step] = T(left[i]);
  }
}

// Integers and bools, and results of another type than the operands'. Arithmetic wraps around, so it is done unsigned.
template <class F, class R, class T>
void scalar_row(F f, R* __restrict out, std::int64_t out_step, const T* a, std::int64_t a_step, const T* b,
                std::int64_t b_step, std::int64_t n) {
  if (out_step == 1 && a_step == 1 && b_step == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<R>(f(a[i], b[i]));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = static_cast<R>(f(a[i * a_step], b[i * b_step]));
}

template <class F, class T>
void unary_typed(const View& out, const View& x,
                 void (*row)(F, T*, std::int64_t, const T*, std::int64_t, std::int64_t)) {
  if (out.contiguous && x.contiguous) [[likely]]
    return row(F{}, out.as<T>(), 1, x.as<T>(), 1, out.numel);
  Iteration<2> iteration({&out, &x});
  iteration.for_each_row([&](const std::int64_t* offset) {
    row(F{}, out.as<T>() + offset[0], iteration.strides[0][0], x.as<T>() + offset[1], iteration.strides[1][0],
        iteration.dims[0]);
  });
}

template <class F, class R, class T>
void binary_typed(const View& out, const View& a, const View& b,
                  void (*row)(F, R*, std::int64_t, const T*, std::int64_t, const T*, std::int64_t, std::int64_t)) {
  if (out.contiguous && a.contiguous && b.contiguous && a.numel == out.numel) [[likely]] {
    if (b.numel == out.numel) [[likely]] {
      if constexpr (std::is_same_v<R, T> && std::is_floating_point_v<T>)
        return contiguous_row(F{}, out.as<T>(), a.as<T>(), b.as<T>(), out.numel);
      else
        return row(F{}, out.as<R>(), 1, a.as<T>(), 1, b.as<T>(), 1, out.numel);
    }
    if (b.numel == 1) return row(F{}, out.as<R>(), 1, a.as<T>(), 1, b.as<T>(), 0, out.numel);
  }
  Iteration<3> iteration({&out, &a, &b});
  iteration.for_each_row([&](const std::int64_t* offset) {
    row(F{}, out.as<R>() + offset[0], iteration.strides[0][0], a.as<T>() + offset[1], iteration.strides[1][0],
        b.as<T>() + offset[2], iteration.strides[2][0], iteration.dims[0]);
  });
}

template <class F>
void floating_unary(const View& out, const View& x) {
  switch (out.dtype) {
    case DType::f32: return unary_typed<F, float>(out, x, floating_row<F, float>);
    case DType::f64: return unary_typed<F, double>(out, x, floating_row<F, double>);
    case DType::bf16: return unary_typed<F, BFloat16>(out, x, half_row<F, BFloat16>);
    case DType::f16: return unary_typed<F, Float16>(out, x, half_row<F, Float16>);
    default: return;  // the op has converted integers
  }
}

// Overflow of signed integers wraps around, as everybody's does.
struct WrappingNeg {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(x));
  }
};
struct WrappingSquare {
  template <class T>
  T operator()(T x) const {
    auto wide = static_cast<std::uint64_t>(x);
    return static_cast<T>(wide * wide);
  }
};
template <class F>
struct Wrapping {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, bool>)
      return static_cast<bool>(F{}(static_cast<int>(a), static_cast<int>(b)));
    else
      return static_cast<T>(F{}(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  }
};
struct IntegerPow {
  template <class T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>)
      if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    std::uint64_t result = 1;
    auto power = static_cast<std::uint64_t>(base);
    for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1) {
      if (rest & 1) result *= power;
      power *= power;
    }
    return static_cast<T>(result);
  }
};

template <class F, class T>
void integer_row(F f, T* out, std::int64_t out_step, const T* x, std::int64_t x_step, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = f(x[i * x_step]);
}

template <class F, class IntegerF>
void any_unary(const View& out, const View& x) {
  switch (out.dtype) {
    case DType::i32: return unary_typed<IntegerF, std::int32_t>(out, x, integer_row<IntegerF, std::int32_t>);
    case DType::i64: return unary_typed<IntegerF, std::int64_t>(out, x, integer_row<IntegerF, std::int64_t>);
    case DType::u8: return unary_typed<IntegerF, std::uint8_t>(out, x, integer_row<IntegerF, std::uint8_t>);
    default: return floating_unary<F>(out, x);
  }
}

template <class F>
void floating_binary(const View& out, const View& a, const View& b) {
  switch (out.dtype) {
    case DType::f32: return binary_typed<F, float, float>(out, a, b, floating_row<F, float>);
    case DType::f64: return binary_typed<F, double, double>(out, a, b, floating_row<F, double>);
    case DType::bf16: return binary_typed<F, BFloat16, BFloat16>(out, a, b, half_row<F, BFloat16>);
    case DType::f16: return binary_typed<F, Float16, Float16>(out, a, b, half_row<F, Float16>);
    default: return;
  }
}

template <class F, class R, class T>
void scalar_binary(const View& out, const View& a, const View& b) {
  binary_typed<F, R, T>(out, a, b, scalar_row<F, R, T>);
}

template <class F, class IntegerF>
void any_binary(const View& out, const View& a, const View& b) {
  switch (out.dtype) {
    case DType::i32: return scalar_binary<IntegerF, std::int32_t, std::int32_t>(out, a, b);
    case DType::i64: return scalar_binary<IntegerF, std::int64_t, std::int64_t>(out, a, b);
    case DType::u8: return scalar_binary<IntegerF, std::uint8_t, std::uint8_t>(out, a, b);
    case DType::boolean: return scalar_binary<IntegerF, bool, bool>(out, a, b);
    default: return floating_binary<F>(out, a, b);
  }
}

template <class F>
struct Widened {
  template <class T>
  bool operator()(T a, T b) const {
    return F{}(static_cast<float>(a), static_cast<float>(b));
  }
};

template <class F>
void comparison(const View& out, const View& a, const View& b) {
  with_type(a.dtype, [&]<class T>(std::type_identity<T>) {
    using Compare = std::conditional_t<std::is_arithmetic_v<T>, F, Widened<F>>;
    scalar_binary<Compare, bool, T>(out, a, b);
  });
}

template <class F>
void reversed_comparison(const View& out, const View& a, const View& b) {
  comparison<F>(out, b, a);
}

// Only bits are moved, so one instance serves all dtypes of a size.
template <class T>
void where_typed(const View& out, const View& condition, const View& a, const View& b) {
  Iteration<4> iteration({&out, &condition, &a, &b});
  const auto& steps = iteration.strides;
  iteration.for_each_row([&](const std::int64_t* offset) {
    T* to = out.as<T>() + offset[0];
    const bool* chosen = condition.as<bool>() + offset[1];
    const T* yes = a.as<T>() + offset[2];
    const T* no = b.as<T>() + offset[3];
    for (std::int64_t i = 0; i < iteration.dims[0]; ++i)
      to[i * steps[0][0]] = chosen[i * steps[1][0]] ? yes[i * steps[2][0]] : no[i * steps[3][0]];
  });
}

template <class T>
void multiply_add_typed(T* sum, const T* a, const T* b, std::int64_t n) {
  using V = Vector<T>;
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes)
    V(hn::MulAdd(V::load(a + i).raw, V::load(b + i).raw, V::load(sum + i).raw)).store(sum + i);
  if (i < n) {
    V rest = hn::MulAdd(gather(a + i, 1, n - i).raw, gather(b + i, 1, n - i).raw, gather(sum + i, 1, n - i).raw);
    scatter(rest, sum + i, 1, n - i);
  }
}

void multiply_add(const View& sum, const View& a, const View& b) {
  if (sum.dtype == DType::f32)
    multiply_add_typed(sum.as<float>(), a.as<float>(), b.as<float>(), sum.numel);
  else
    multiply_add_typed(sum.as<double>(), a.as<double>(), b.as<double>(), sum.numel);
}

void where_kernel(const View& out, const View& condition, const View& a, const View& b) {
  with_bits(out.dtype, [&]<class T>(std::type_identity<T>) { where_typed<T>(out, condition, a, b); });
}

}  // namespace

void fill_elementwise(KernelTable& table) {
  namespace f = formulas;
  auto unary = [&](Unary op) -> KernelTable::UnaryKernel& { return table.unary[static_cast<int>(op)]; };
  unary(Unary::neg) = any_unary<f::Neg, WrappingNeg>;
  unary(Unary::exp) = floating_unary<f::Exp>;
  unary(Unary::log) = floating_unary<f::Log>;
  unary(Unary::sqrt) = floating_unary<f::Sqrt>;
  unary(Unary::square) = any_unary<f::Square, WrappingSquare>;
  unary(Unary::tanh) = floating_unary<f::Tanh>;
  unary(Unary::sigmoid) = floating_unary<f::Sigmoid>;
  unary(Unary::relu) = any_unary<f::Relu, f::Relu>;
  auto binary = [&](Binary op) -> KernelTable::BinaryKernel& { return table.binary[static_cast<int>(op)]; };
  binary(Binary::add) = any_binary<f::Add, Wrapping<f::Add>>;
  binary(Binary::sub) = any_binary<f::Sub, Wrapping<f::Sub>>;
  binary(Binary::mul) = any_binary<f::Mul, Wrapping<f::Mul>>;
  binary(Binary::div) = floating_binary<f::Div>;
  binary(Binary::pow) = any_binary<f::Pow, IntegerPow>;
  binary(Binary::equal) = comparison<f::Equal>;
  binary(Binary::not_equal) = comparison<f::NotEqual>;
  binary(Binary::less) = comparison<f::Less>;
  binary(Binary::less_equal) = comparison<f::LessEqual>;
  binary(Binary::greater) = reversed_comparison<f::Less>;
  binary(Binary::greater_equal) = reversed_comparison<f::LessEqual>;
  binary(Binary::tanh_gradient) = floating_binary<f::TanhGradient>;
  binary(Binary::sigmoid_gradient) = floating_binary<f::SigmoidGradient>;
  binary(Binary::relu_gradient) = floating_binary<f::ReluGradient>;
  table.multiply_add = multiply_add;
  table.where = where_kernel;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
