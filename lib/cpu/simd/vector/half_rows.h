#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../../core/halves.h"
#include "vector.h"

// Vectors of f32 from halves in memory, and the reverse. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// The elements of a vector, widened to f32.
HWY_INLINE Vector<float> load_widened(const BFloat16* from) {
  using Tag = Vector<float>::Tag;
  const hn::Rebind<std::uint16_t, Tag> halves;
  const hn::RebindToUnsigned<Tag> words;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, &from->bits))));
}

/// The elements of a vector, widened to f32.
HWY_INLINE Vector<float> load_widened(const Float16* from) {
  using V = Vector<float>;
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<hwy::float16_t, V::Tag> halves;
  return hn::PromoteTo(V::Tag(), hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  // Highway's own conversion turns infinities into numbers where the processor has none.
  float some[V::lanes];
  for (std::int64_t i = 0; i < V::lanes; ++i) some[i] = widened(from[i]);
  return V::load(some);
#endif
}

/// Fewer elements than a vector has, or as many; the others are zeros.
template <class H>
HWY_INLINE Vector<float> load_widened(const H* from, std::int64_t count) {
  constexpr std::int64_t lanes = Vector<float>::lanes;
  if (count >= lanes) return load_widened(from);
  H some[lanes] = {};
  std::copy_n(from, count, some);
  return load_widened(some);
}

/// Widens adjacent elements to f32.
template <class H>
void widen_row(float* to, const H* from, std::int64_t count) {
  constexpr std::int64_t lanes = Vector<float>::lanes;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) load_widened(from + i).store(to + i);
  for (; i < count; ++i) to[i] = widened(from[i]);
}

/// Widens elements that are `step` apart.
template <class H>
void widen_row(float* to, const H* from, std::int64_t step, std::int64_t count) {
  if (step == 1) return widen_row(to, from, count);
  constexpr std::int64_t most = 64;
  H some[most];
  for (std::int64_t first = 0; first < count; first += most) {
    std::int64_t there = std::min(most, count - first);
    for (std::int64_t i = 0; i < there; ++i) some[i] = from[(first + i) * step];
    widen_row(to + first, some, there);
  }
}

/// Rounds as many whole vectors to halves as there are, where that takes one instruction. Returns the number of elements.
template <class H>
std::int64_t narrow_vectors([[maybe_unused]] H* to, [[maybe_unused]] const float* from,
                            [[maybe_unused]] std::int64_t count) {
  std::int64_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  using V = Vector<float>;
  const hn::Rebind<hwy::float16_t, V::Tag> halves;
  if constexpr (std::is_same_v<H, Float16>)
    for (; i + V::lanes <= count; i += V::lanes) {
      V x = V::load(from + i), nan(std::numeric_limits<double>::quiet_NaN());
      x = select(x == x, x, copysign(nan, x));  // as `narrowed` does, any NaN becomes one of two
      hn::StoreU(hn::DemoteTo(halves, x.raw), halves, reinterpret_cast<hwy::float16_t*>(to + i));
    }
#endif
  return i;
}

/// Rounds elements to halves. Inlined, g++ 12 does not vectorise it.
template <class H>
[[gnu::noinline]] void narrow_row(H* to, const float* from, std::int64_t count) {
  for (std::int64_t i = narrow_vectors(to, from, count); i < count; ++i) to[i] = narrowed<H>(from[i]);
}

/// Rounds elements to what the half H represents.
template <class H>
void round_row(float* values, std::int64_t count) {
  using V = Vector<float>;
  constexpr std::int64_t most = 256;
  H halves[most] = {};
  for (std::int64_t first = 0; first < count; first += most) {
    std::int64_t there = std::min(most, count - first);
    narrow_row(halves, values + first, there);
    for (std::int64_t i = 0; i < there; i += V::lanes)
      load_widened(halves + i).store(values + first + i, std::min(V::lanes, there - i));
  }
}

}  // namespace reel::detail::inline REEL_TARGET
