#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "../../../kernels/kernel_table.h"
#include "block_loop.h"
#include "vector.h"

// Turns formulas into kernels. A formula is compiled once for vectors of f32 and once for f64; half inputs use the loop
// of f32. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

// Every floating element is computed by the vector formula, also those behind the last full vector: a value never
// depends on its position.

template <class F, class T>
void vector_loop_1(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto* y = static_cast<T*>(out);
  auto* x = static_cast<const T*>(inputs[0]);
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes) F()(V::load(x + i)).store(y + i);
  if (i < count) F()(V::load(x + i, count - i)).store(y + i, count - i);
}

template <class F, class T>
void vector_loop_2(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto* y = static_cast<T*>(out);
  auto* a = static_cast<const T*>(inputs[0]);
  auto* b = static_cast<const T*>(inputs[1]);
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes) F()(V::load(a + i), V::load(b + i)).store(y + i);
  if (i < count) F()(V::load(a + i, count - i), V::load(b + i, count - i)).store(y + i, count - i);
}

template <class F, class T>
void vector_loop_3(void* out, const void* const* inputs, std::int64_t count) {
  using V = Vector<T>;
  auto* y = static_cast<T*>(out);
  auto* a = static_cast<const T*>(inputs[0]);
  auto* b = static_cast<const T*>(inputs[1]);
  auto* c = static_cast<const T*>(inputs[2]);
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes) F()(V::load(a + i), V::load(b + i), V::load(c + i)).store(y + i);
  if (std::int64_t left = count - i)
    F()(V::load(a + i, left), V::load(b + i, left), V::load(c + i, left)).store(y + i, left);
}

// For integers and bools, and for results of another type than the operands'.

template <class F, class R, class T>
void scalar_loop_1(void* out, const void* const* inputs, std::int64_t count) {
  auto* y = static_cast<R*>(out);
  auto* x = static_cast<const T*>(inputs[0]);
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(F()(x[i]));
}

template <class F, class R, class T>
void scalar_loop_2(void* out, const void* const* inputs, std::int64_t count) {
  auto* y = static_cast<R*>(out);
  auto* a = static_cast<const T*>(inputs[0]);
  auto* b = static_cast<const T*>(inputs[1]);
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(F()(a[i], b[i]));
}

template <class F, class R, class T>
void scalar_loop_3(void* out, const void* const* inputs, std::int64_t count) {
  auto* y = static_cast<R*>(out);
  auto* a = static_cast<const T*>(inputs[0]);
  auto* b = static_cast<const T*>(inputs[1]);
  auto* c = static_cast<const T*>(inputs[2]);
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(F()(a[i], b[i], c[i]));
}

/// The number of elements from which a second thread, which takes some 5 µs to wake, pays.
constexpr std::int64_t parallel_from(Grain grain) {
  switch (grain) {
    case Grain::coarse: return 1 << 16;
    case Grain::medium: return 1 << 15;
    default: return 1 << 13;
  }
}

/// The formula of vectors; another one where a formula is inexact in f32.
template <class F>
struct VectorFormula {
  using type = F;
};

template <class F, Grain grain>
void floating_unary(const View& out, const View& x) {
  BlockLoop loop = x.dtype == DType::f64 ? vector_loop_1<F, double> : vector_loop_1<F, float>;
  // x may be a number of f32 beside halves.
  bool half = out.dtype == DType::bf16 || out.dtype == DType::f16;
  if (out.contiguous && x.contiguous && x.numel == out.numel && !half && out.numel < parallel_from(grain)) [[likely]] {
    const void* input = x.data;
    return loop(out.data, &input, out.numel);
  }
  run_loop(out, {&x}, loop, {.parallel_from = parallel_from(grain)});
}

template <class F, Grain grain>
void floating_binary(const View& out, const View& a, const View& b) {
  run_loop(out, {&a, &b}, a.dtype == DType::f64 ? vector_loop_2<F, double> : vector_loop_2<F, float>,
           {.parallel_from = parallel_from(grain)});
}

template <class Row>
void number_unary(const View& out, const View& x) {
  using F = typename Row::IntegerFormula;
  if (is_floating(out.dtype)) return floating_unary<typename Row::Formula, Row::grain>(out, x);
  with_integer(out.dtype, [&]<class T>(std::type_identity<T>) { run_loop(out, {&x}, scalar_loop_1<F, T, T>); });
}

/// A formula of integers and bools, and of f32 to which halves are widened, that returns bools. The compiler makes vectors
/// of bytes, but not of bools.
template <class F>
void predicate(const View& out, const View& x) {
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, Wide<T>>;
    run_loop(out, {&x}, scalar_loop_1<F, bool, Element>, {.parallel_from = parallel_from(Grain::coarse)});
  });
}

template <class F>
void comparison(const View& out, const View& a, const View& b) {
  with_type(a.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&a, &b}, scalar_loop_2<F, bool, Wide<T>>, {.parallel_from = parallel_from(Grain::coarse)});
  });
}

// For integers the op computes the result without a kernel.
template <class F>
void floating_predicate(const View& out, const View& x) {
  run_loop(out, {&x}, x.dtype == DType::f64 ? scalar_loop_1<F, bool, double> : scalar_loop_1<F, bool, float>);
}

template <class Row>
constexpr KernelTable::UnaryKernel unary_kernel() {
  using F = typename VectorFormula<typename Row::Formula>::type;
  if constexpr (Row::operands == Operands::compared)
    return predicate<F>;
  else if constexpr (Row::operands == Operands::floating_compared)
    return floating_predicate<F>;
  else if constexpr (Row::operands == Operands::numbers)
    return number_unary<Row>;
  else
    return floating_unary<F, Row::grain>;
}

template <class... Rows>
void fill_unary_kernels(KernelTable& table, KernelList<Rows...>) {
  ((table.unary[unary_place<typename Rows::Formula>] = unary_kernel<Rows>()), ...);
}

}  // namespace reel::detail::inline REEL_TARGET
