#pragma once

#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "../../../core/target.h"
#include "../../../kernels/pooling.h"

// Adjacent windows of 2 × 2, the most common pooling: each vector of results is computed in registers from its four
// vectors of elements, bound by memory: see "Pooling" in tools/benchmark/README.md. A gradient written in this way took
// as long as the code that adds to zeros.

namespace reel::detail::inline REEL_TARGET {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Squares {
  using Place = std::conditional_t<std::is_same_v<T, double>, std::int64_t, std::int32_t>;
  static constexpr int lanes = HWY_LANES(T);

  static bool fit(const Pooling& p) {
    bool flat = p.size[0] == 1 && p.results[0] == 1 && p.window[0] == 1;
    for (int axis : {1, 2})
      flat = flat && p.window[axis] == 2 && p.stride[axis] == 2 && p.padding[axis] == 0 && p.dilation[axis] == 1 &&
             2 * p.results[axis] <= p.size[axis];
    return flat && !p.adaptive && !p.channels_last;
  }

  // An element and its index.
  template <class D>
  struct Found {
    hn::Vec<D> number;
    hn::Vec<hn::Rebind<Place, D>> place;
  };

  // The larger of two; of equal ones the first.
  template <bool indexed = true, class D>
  static HWY_INLINE Found<D> larger(D tag, Found<D> a, Found<D> b) {
    auto better = hn::Or(hn::Gt(b.number, a.number), hn::IsNaN(b.number));
    if constexpr (!indexed) return {hn::IfThenElse(better, b.number, a.number), a.place};
    const hn::Rebind<Place, D> places;
    auto earlier = hn::RebindMask(tag, hn::Lt(b.place, a.place));
    better = hn::Or(better, hn::And(hn::Eq(b.number, a.number), earlier));
    return {hn::IfThenElse(better, b.number, a.number),
            hn::IfThenElse(hn::RebindMask(places, better), b.place, a.place)};
  }

  // `count` results from two rows of 2 `count` elements; the index of the first element is `place`.
  template <int count>
  static HWY_INLINE void largest(const T* x, std::int64_t width, std::int64_t place, T* values, std::int64_t* indices) {
    const hn::CappedTag<T, count> tag;
    const hn::Rebind<Place, decltype(tag)> places;
    using F = Found<std::remove_const_t<decltype(tag)>>;
    F upper_left, upper_right, lower_left, lower_right;
    hn::LoadInterleaved2(tag, x, upper_left.number, upper_right.number);
    hn::LoadInterleaved2(tag, x + width, lower_left.number, lower_right.number);
    auto first = hn::Add(hn::ShiftLeft<1>(hn::Iota(places, 0)), hn::Set(places, static_cast<Place>(place)));
    auto one = hn::Set(places, Place{1}), below = hn::Set(places, static_cast<Place>(width));
    upper_left.place = first;
    upper_right.place = hn::Add(first, one);
    lower_left.place = hn::Add(first, below);
    lower_right.place = hn::Add(lower_left.place, one);
    F found = larger(tag, larger(tag, upper_left, lower_left), larger(tag, upper_right, lower_right));
    hn::StoreU(found.number, tag, values);
    if (!indices) return;
    alignas(64) Place kept[count];
    hn::Store(found.place, places, kept);
    for (int i = 0; i < count; ++i) indices[i] = kept[i];
  }

  // Calls f<count>(o) for all results of a row, with vectors as long as possible.
  template <int count, class F>
  static HWY_INLINE void for_each(std::int64_t begin, std::int64_t end, F f) {
    std::int64_t o = begin;
    for (; o + count <= end; o += count) f(std::integral_constant<int, count>(), o);
    if constexpr (count > 1) for_each<count / 2>(o, end, f);
  }

  /// Computes rows [begin, end) of all rows of results. `indices` may be null.
  static void max(T* values, std::int64_t* indices, const T* x, const Pooling& p, std::int64_t begin,
                  std::int64_t end) {
    std::int64_t width = p.size[2], results = p.results[2], plane = begin / p.results[1], row = begin % p.results[1];
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t place = 2 * row * width;
      const T* from = x + plane * p.size[1] * width + place;
      for_each<lanes>(0, results, [&](auto count, std::int64_t o) {
        largest<count>(from + 2 * o, width, place + 2 * o, values + i * results + o,
                       indices ? indices + i * results + o : nullptr);
      });
      if (++row < p.results[1]) continue;
      row = 0;
      ++plane;
    }
  }
};

}  // namespace reel::detail::inline REEL_TARGET
