#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "../../device/element.h"
#include "../../device/packed_row.h"

namespace reel::detail::inline REEL_TARGET {

/// The largest of some numbers, and Σ e^(x − largest); −∞ and 0 if there are none.
template <class Wide>
struct Exponents {
  static constexpr Wide infinity = std::numeric_limits<Wide>::infinity();
  Wide largest = -infinity, sum = 0;

  /// Adds the elements of a pack: the sum so far is rescaled only if one of them is larger than all before.
  template <class T, int lanes>
  REEL_HOST_DEVICE void add(const Pack<T, lanes>& pack) {
    Wide most = loaded(pack.element[0]);
#pragma unroll
    for (int lane = 1; lane < lanes; ++lane) {
      Wide x = loaded(pack.element[lane]);
      if (x > most || x != x) most = x;
    }
    if (!(most <= largest)) {
      sum *= std::exp(largest - most);
      largest = most;
    }
    // −∞ less −∞ would be NaN, as ∞ less ∞ is.
    Wide shift = largest == -infinity ? Wide(0) : largest;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) sum += std::exp(loaded(pack.element[lane]) - shift);
  }
  REEL_HOST_DEVICE static Exponents joined(Exponents a, Exponents b) {
    bool b_leads = b.largest > a.largest || b.largest != b.largest;
    Exponents first = b_leads ? b : a, second = b_leads ? a : b;
    // If both are infinite, their difference is NaN.
    if (second.sum != 0) first.sum += second.sum * std::exp(second.largest - first.largest);
    return first;
  }
};

/// The exponents of a row, in one pass, the first. load(p) gives pack p.
template <int lanes, class T, class Group, class Kept, class Load>
REEL_DEVICE Exponents<Wide<T>> exponents_of_row(Group& group, const PackLoop<lanes>& loop, Kept& kept,
                                                const Load& load) {
  using E = Exponents<Wide<T>>;
  auto partial = group.template per_thread<E>();
  group.each([&](int thread) {
    KeptPacks<T, lanes>& own = kept[thread];
    E all;
    loop.run(
        0, thread, [&](int k, std::int64_t p) { own.of[k] = load(p); },
        [&](int k, std::int64_t) { all.add(own.of[k]); });
    partial[thread] = all;
  });
  return group.reduce(partial, [](E a, E b) { return E::joined(a, b); });
}

}  // namespace reel::detail::inline REEL_TARGET
