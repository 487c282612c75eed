#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "../../../core/target.h"
#include "../products/gemm.h"

// Inner products of lines of one image with lines of another, for several shifts at a time.

namespace reel::detail::inline REEL_TARGET {

/// Lines of a box of d, and the offsets at which the corresponding lines of x begin.
template <class T>
struct LinePairs {
  const T* d;
  const T* x;
  const std::int64_t* d_offsets;
  const std::int64_t* x_offsets;
  std::int64_t count, length;
};

template <class T>
struct Dots {
  using G = Gemm<T>;
  using Lanes = typename G::Lanes;
  static constexpr std::int64_t lanes = G::lanes;
  static constexpr int most = 12;

  /// sums[s] += Σ d · x shifted by shifts[s].
  template <int count>
  static void add(const LinePairs<T>& lines, const std::int64_t* shifts, T* sums) {
    const typename G::Tag tag;
    Lanes totals[count];
    T rest[count] = {};
#pragma GCC unroll 16
    for (int s = 0; s < count; ++s) totals[s] = hn::Zero(tag);
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const T *d = lines.d + lines.d_offsets[line], *x = lines.x + lines.x_offsets[line];
      std::int64_t i = 0;
      for (; i + lanes <= lines.length; i += lanes) {
        Lanes from_d = hn::LoadU(tag, d + i);
#pragma GCC unroll 16
        for (int s = 0; s < count; ++s) totals[s] = hn::MulAdd(from_d, hn::LoadU(tag, x + shifts[s] + i), totals[s]);
      }
      if (i == lines.length) continue;
#if HWY_TARGET <= HWY_AVX3
      // Elements behind a line might be NaN.
      auto there = hn::FirstN(tag, static_cast<std::size_t>(lines.length - i));
      Lanes from_d = hn::MaskedLoad(there, tag, d + i);
#pragma GCC unroll 16
      for (int s = 0; s < count; ++s)
        totals[s] = hn::MulAdd(from_d, hn::MaskedLoad(there, tag, x + shifts[s] + i), totals[s]);
#else
      for (; i < lines.length; ++i)
        for (int s = 0; s < count; ++s) rest[s] += d[i] * x[shifts[s] + i];
#endif
    }
#pragma GCC unroll 16
    for (int s = 0; s < count; ++s) sums[s] += hn::GetLane(hn::SumOfLanes(tag, totals[s])) + rest[s];
  }

  using Kernel = void (*)(const LinePairs<T>& lines, const std::int64_t* shifts, T* sums);
  template <int... counts>
  static constexpr std::array<Kernel, most> make_kernels(std::integer_sequence<int, counts...>) {
    return {add<counts + 1>...};
  }
  static constexpr std::array<Kernel, most> kernels = make_kernels(std::make_integer_sequence<int, most>());

  /// sums[s] += Σ d · x shifted by shifts[s], for any number of shifts, in groups of about equal size.
  static void add_all(const LinePairs<T>& lines, const std::int64_t* shifts, std::int64_t count, T* sums) {
    std::int64_t parts = (count + most - 1) / most;
    for (std::int64_t part = 0; part < parts; ++part) {
      std::int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      kernels[end - begin - 1](lines, shifts + begin, sums + begin);
    }
  }
};

}  // namespace reel::detail::inline REEL_TARGET
