#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "../../../core/halves.h"
#include "../../../core/target.h"
#include "../products/gemm.h"
#include "../vector/half_rows.h"

// Short lines of elements: a few vectors, of which the last may be partial.

namespace reel::detail::inline REEL_TARGET {

/// to = f(from), a vector at a time.
template <class T, class F>
HWY_INLINE void for_line(T* to, const T* from, std::int64_t count, F f) {
  const hn::ScalableTag<T> tag;
  constexpr std::int64_t lanes = HWY_LANES(T);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(tag, from + i)), tag, to + i);
  if (i == count) return;
#if HWY_TARGET <= HWY_AVX3
  // Elements beyond the line's end are neither read nor written.
  auto rest = hn::FirstN(tag, static_cast<std::size_t>(count - i));
  hn::BlendedStore(f(hn::MaskedLoad(rest, tag, from + i)), rest, tag, to + i);
#else
  const hn::CappedTag<T, 1> one;
  for (; i < count; ++i) hn::StoreU(f(hn::LoadU(one, from + i)), one, to + i);
#endif
}

template <class T>
HWY_INLINE void zero_line(T* to, std::int64_t count) {
  const hn::ScalableTag<T> tag;
  constexpr std::int64_t lanes = HWY_LANES(T);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Zero(tag), tag, to + i);
  for (; i < count; ++i) to[i] = 0;
}

template <class S, class T>
HWY_INLINE void copy_line(T* to, const S* from, std::int64_t step, std::int64_t count) {
  if constexpr (std::is_same_v<S, T>)
    if (step == 1) return for_line(to, from, count, [](auto v) { return v; });
  if constexpr (is_half_v<S>)
    widen_row(to, from, step, count);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

/// Writes zeros, then elements with stride `step`, then zeros.
template <class S, class T>
HWY_INLINE void padded_line(T* to, const S* from, std::int64_t step, std::int64_t before, std::int64_t inside,
                            std::int64_t after) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (std::is_same_v<S, T>)
    if (step == 1) {
      const hn::ScalableTag<T> tag;
      constexpr std::int64_t lanes = HWY_LANES(T);
      auto first = [&](std::int64_t count) {
        return hn::FirstN(tag, static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, lanes)));
      };
      std::int64_t width = before + inside + after;
      // Prefetches the following lines: 2 KiB ahead halves the time if images come from the third-level cache.
      constexpr std::int64_t ahead = 2048 / sizeof(T), cache_line = 64 / sizeof(T);
      for (std::int64_t i = 0; i < inside; i += cache_line) __builtin_prefetch(from + i + ahead);
      for (std::int64_t i = 0; i < width; i += lanes) {
        auto there = hn::AndNot(first(before - i), first(before + inside - i));
        auto v = hn::MaskedLoad(there, tag, from + i - before);
        if (i + lanes <= width)
          hn::StoreU(v, tag, to + i);
        else
          hn::BlendedStore(v, first(width - i), tag, to + i);
      }
      return;
    }
#endif
  zero_line(to, before);
  copy_line(to + before, from, step, inside);
  zero_line(to + before + inside, after);
}

template <class S, class T>
S rounded(T sum) {
  if constexpr (std::is_same_v<S, T>)
    return sum;
  else
    return narrowed<S>(sum);
}

#if HWY_TARGET <= HWY_AVX3
inline constexpr bool has_masks = true;
#else
inline constexpr bool has_masks = false;
#endif

/// A line of a source, and the weights by which its elements are multiplied.
template <class T>
struct WeightedLine {
  const T* from;
  const T* weights;
};

/// to[i] = plus + Σ over lines and taps t of weights[t] from[begin + t · step + i], with zeros outside [0, size), for
/// i < count, at most `vectors` vectors. With `inner_inside`, only the first and the last vector reach outside.
template <int vectors, bool inner_inside, class T>
HWY_INLINE void sum_lines(T* to, std::int64_t count, const WeightedLine<T>* lines, std::int64_t line_count,
                          std::int64_t taps, std::int64_t begin, std::int64_t step, std::int64_t size, T plus) {
  using G = Gemm<T>;
  const typename G::Tag tag;
  constexpr std::int64_t lanes = G::lanes;
  auto first = [&](std::int64_t n) {
    return hn::FirstN(tag, static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, lanes)));
  };
  using Masks = hn::Mask<typename G::Tag>[vectors];
  auto find = [&](std::int64_t t, Masks& there) {
    std::int64_t at = begin + t * step;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) there[v] = hn::AndNot(first(-at - v * lanes), first(size - at - v * lanes));
  };
  // With few taps, the masks are computed once for all lines.
  constexpr std::int64_t few = 8;
  Masks kept[few];
  for (std::int64_t t = 0; t < std::min(taps, few); ++t) find(t, kept[t]);
  typename G::Lanes sums[vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) sums[v] = hn::Zero(tag);
  for (std::int64_t line = 0; line < line_count; ++line)
    for (std::int64_t t = 0; t < taps; ++t) {
      Masks found;
      if (t >= few) find(t, found);
      const Masks& there = t < few ? kept[t] : found;
      const T* from = lines[line].from + begin + t * step;
      auto weight = hn::Set(tag, lines[line].weights[t]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        if (inner_inside && v != 0 && v != vectors - 1)
          sums[v] = hn::MulAdd(weight, hn::LoadU(tag, from + v * lanes), sums[v]);
        else
          sums[v] = hn::MulAdd(weight, hn::MaskedLoad(there[v], tag, from + v * lanes), sums[v]);
    }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) sums[v] = hn::Add(sums[v], hn::Set(tag, plus));
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    std::int64_t left = count - v * lanes;
    if (left >= lanes)
      hn::StoreU(sums[v], tag, to + v * lanes);
    else if (left > 0)
      hn::BlendedStore(sums[v], first(left), tag, to + v * lanes);
  }
}

/// Stores each element plus a number, rounded to S.
template <class S, class T>
HWY_INLINE void store_line(S* to, std::int64_t step, const T* from, T plus, std::int64_t count) {
  if constexpr (std::is_same_v<S, T>)
    if (step == 1)
      return for_line(to, from, count, [plus](auto v) { return hn::Add(v, hn::Set(hn::DFromV<decltype(v)>(), plus)); });
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = rounded<S>(from[i] + plus);
  else
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = rounded<S>(from[i] + plus);
}

}  // namespace reel::detail::inline REEL_TARGET
