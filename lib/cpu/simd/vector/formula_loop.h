#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "../../../core/dtype_dispatch.h"
#include "../../../core/halves.h"
#include "block_loop.h"
#include "vector.h"

// Turns formulas into kernels. A formula is compiled once for vectors of f32 and once for f64; half inputs use the loop
// of f32. This header is compiled once per instruction set.

namespace reel::detail {
inline namespace REEL_TARGET {

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

// The number of elements from which a second thread, which takes some 5 µs to wake, pays: for formulas that take less
// than 0.4 ns, some 1 ns, and more than 2 ns an element.
inline constexpr std::int64_t cheap = 1 << 16, dear = 1 << 15, slow = 1 << 13;

template <class F, std::int64_t parallel_from>
void floating_unary(const View& out, const View& x) {
  BlockLoop loop = x.dtype == DType::f64 ? vector_loop_1<F, double> : vector_loop_1<F, float>;
  bool half = x.dtype == DType::bf16 || x.dtype == DType::f16;
  if (out.contiguous && x.contiguous && x.numel == out.numel && !half && out.numel < parallel_from) [[likely]] {
    const void* input = x.data;
    return loop(out.data, &input, out.numel);
  }
  run_loop(out, {&x}, loop, {.parallel_from = parallel_from});
}

template <class F, std::int64_t parallel_from>
void floating_binary(const View& out, const View& a, const View& b) {
  run_loop(out, {&a, &b}, a.dtype == DType::f64 ? vector_loop_2<F, double> : vector_loop_2<F, float>,
           {.parallel_from = parallel_from});
}

/// A formula of integers and bools, and of f32 to which halves are widened, that returns bools.
template <class F>
void predicate(const View& out, const View& x) {
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&x}, scalar_loop_1<F, bool, Wide<T>>, {.parallel_from = cheap});
  });
}

template <class F>
void comparison(const View& out, const View& a, const View& b) {
  with_type(a.dtype, [&]<class T>(std::type_identity<T>) {
    run_loop(out, {&a, &b}, scalar_loop_2<F, bool, Wide<T>>, {.parallel_from = cheap});
  });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
