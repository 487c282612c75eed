#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "../../../kernels/pooling.h"
#include "../vector/half_rows.h"
#include "../vector/vector.h"
#include "../vector/wide.h"
#include "pooling_squares.h"

// The largest numbers of windows of any length and distance. This header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

// The largest numbers of short windows inside of rows, in one pass and without their indices.
template <class T>
struct ShortWindows {
  using V = Vector<T>;

  static bool fit(const Pooling& p) {
    std::int64_t reach = (p.window[2] - 1) * p.dilation[2];
    // With vectors of 16 bytes it takes longer than passes over segments.
    return sizeof(V) > 16 && !p.adaptive && !p.channels_last && p.size[0] * p.size[1] == 1 && p.window[2] <= 4 &&
           p.padding[2] == 0 && (p.results[2] - 1) * p.stride[2] + reach < p.size[2] &&
           (p.stride[2] == 1 || (p.stride[2] == 2 && p.dilation[2] == 1));
  }
  static V larger(V a, V b) { return select(hn::Or(b > a, hn::IsNaN(b.raw)), b, a); }

  /// Takes rows [begin, end).
  static void max(T* values, const T* x, const Pooling& p, std::int64_t begin, std::int64_t end) {
    std::int64_t results = p.results[2], stride = p.stride[2], dilation = p.dilation[2], window = p.window[2];
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = x + row * p.size[2];
      T* to = values + row * results;
      std::int64_t o = 0;
      if (stride == 1) {
        for (; o + V::lanes <= results; o += V::lanes) {
          V most = V::load(from + o);
          for (std::int64_t k = 1; k < window; ++k) most = larger(most, V::load(from + o + k * dilation));
          most.store(to + o);
        }
      } else {
        // Elements are read in pairs.
        for (; 2 * (o + V::lanes) + (window - 1) / 2 * 2 <= p.size[2]; o += V::lanes) {
          typename V::Raw even, odd;
          hn::LoadInterleaved2(typename V::Tag(), from + 2 * o, even, odd);
          V most = window > 1 ? larger(even, odd) : V(even);
          if (window > 2) hn::LoadInterleaved2(typename V::Tag(), from + 2 * o + 2, even, odd);
          if (window > 2) most = larger(most, even);
          if (window > 3) most = larger(most, odd);
          most.store(to + o);
        }
      }
      for (; o < results; ++o) {
        T most = from[o * stride];
        for (std::int64_t k = 1; k < window; ++k) {
          T other = from[o * stride + k * dilation];
          if (other > most || other != other) most = other;
        }
        to[o] = most;
      }
    }
  }
};

// The largest numbers at adjacent positions and, if wanted, their indices.
template <class T, bool indexed>
class Largest {
  using W = Wide<T>;
  using Place = Squares<W>::Place;
  using V = Vector<W>;
  using P = Vector<Place>;
  using Found = Squares<W>::template Found<typename V::Tag>;
  static constexpr std::int64_t lanes = V::lanes;
  using All = std::integral_constant<std::int64_t, lanes>;

 public:
  // Before all are taken they are those of no elements.
  explicit Largest(std::int64_t n)
      : numbers_(static_cast<std::size_t>(n + 2 * lanes), -std::numeric_limits<W>::infinity()),
        places_(static_cast<std::size_t>(indexed ? n + 2 * lanes : 0), std::numeric_limits<Place>::max()) {}

  // Takes rows of n elements, whose first ones are `hop` elements for each place apart: elements of adjacent places or,
  // if `hop` is n, the channels of one place.
  void take_rows(std::int64_t first, const T* x, const std::vector<std::int64_t>& rows, std::int64_t n,
                 std::int64_t hop) {
    for_each_vector(n, [&](std::int64_t j, auto count) {
      P steps = hop == 1 ? P(hn::Iota(typename P::Tag(), static_cast<Place>(j))) : P(0);
      auto found = [&](std::int64_t row) -> Found {
        return {load(x + row * hop + j, count).raw, (steps + P::repeat(static_cast<Place>(row))).raw};
      };
      Found most = found(rows[0]);
      for (std::size_t i = 1; i < rows.size(); ++i) most = larger(most, found(rows[i]));
      put(most, first + j, count);
    });
  }

  // Takes `count` elements of rows of n, from position `begin` on; those outside of the rows are those of no elements.
  void take_parts(std::int64_t first, std::int64_t count, const T* x, std::vector<std::int64_t>& rows, std::int64_t n,
                  std::int64_t begin) {
    std::int64_t start = std::clamp<std::int64_t>(-begin, 0, count), end = std::clamp(n - begin, start, count);
    take_none(first, start);
    take_none(first + end, count - end);
    for (std::int64_t& row : rows) row += begin + start;
    take_rows(first + start, x, rows, end - start, 1);
    for (std::int64_t& row : rows) row -= begin + start;
  }

  // Takes windows that begin at each of n positions of `from`, in passes that double their lengths.
  void take_windows(const Largest& from, std::int64_t n, std::int64_t window, std::int64_t dilation) {
    const Largest* shorter = &from;
    std::int64_t length = 1;
    do {
      std::int64_t more = std::min(length, window - length);
      length += more;
      for_each_vector(n + (window - length) * dilation, [&](std::int64_t i, auto count) {
        put(larger(shorter->at(i, count), shorter->at(i + more * dilation, count)), i, count);
      });
      shorter = this;
    } while (length < window);
  }

  // Takes at position o the window of `span`.
  void take_window(std::int64_t o, const Largest& from, Pooling::Span span, std::int64_t step) {
    constexpr std::int64_t one = 1;
    Found most = from.at(span.begin, one);
    for (std::int64_t k = 1; k < span.count; ++k) most = larger(most, from.at(span.begin + k * step, one));
    put(most, o, one);
  }

  // Writes those of n positions.
  void write(T* values, std::int64_t* indices, std::int64_t first, std::int64_t stride, std::int64_t n) const {
    const W* numbers = numbers_.data() + first;
    if constexpr (std::is_same_v<T, W>) {
      copy(numbers, stride, n, values);
    } else if (stride == 1) {
      narrow_row(values, numbers, n);
    } else {
      for (std::int64_t o = 0; o < n; ++o) values[o] = narrow<T>(numbers[o * stride]);
    }
    if constexpr (indexed) {
      const Place* places = places_.data() + first;
      for (std::int64_t o = 0; o < n; ++o) indices[o] = places[o * stride];
    }
  }

 private:
  void take_none(std::int64_t first, std::int64_t n) {
    std::fill_n(numbers_.begin() + first, n, -std::numeric_limits<W>::infinity());
    if constexpr (indexed) std::fill_n(places_.begin() + first, n, std::numeric_limits<Place>::max());
  }
  // Calls f(position, count), with a constant for whole vectors.
  template <class F>
  static void for_each_vector(std::int64_t n, F f) {
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) f(i, All());
    if (i < n) f(i, n - i);
  }
  template <class E, class Count>
  static auto load(const E* from, Count n) {
    constexpr bool all = std::is_same_v<Count, All>;
    if constexpr (std::is_same_v<E, Wide<E>>) {
      return all ? Vector<E>::load(from) : Vector<E>::load(from, n);
    } else {
      return all ? load_widened(from) : load_widened(from, n);
    }
  }
  static Found larger(Found a, Found b) { return Squares<W>::template larger<indexed>(typename V::Tag(), a, b); }
  template <class Count>
  Found at(std::int64_t i, Count n) const {
    P place(0);
    if constexpr (indexed) place = load(places_.data() + i, n);
    return {load(numbers_.data() + i, n).raw, place.raw};
  }
  template <class Count>
  void put(Found found, std::int64_t i, Count n) {
    std::is_same_v<Count, All> ? V(found.number).store(numbers_.data() + i)
                               : V(found.number).store(numbers_.data() + i, n);
    if constexpr (indexed) P(found.place).store(places_.data() + i, n);
  }
  static void copy(const W* from, std::int64_t stride, std::int64_t n, W* to) {
    if (stride == 1) return static_cast<void>(std::copy_n(from, n, to));
    std::int64_t o = 0;
    if (stride == 2)
      for (typename V::Raw even, odd; o + lanes <= n; o += lanes) {
        hn::LoadInterleaved2(typename V::Tag(), from + 2 * o, even, odd);
        V(even).store(to + o);
      }
    for (; o < n; ++o) to[o] = from[o * stride];
  }

  std::vector<W> numbers_;
  std::vector<Place> places_;
};

}  // namespace reel::detail::inline REEL_TARGET
