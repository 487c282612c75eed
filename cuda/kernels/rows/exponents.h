#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "../../device/element.h"

namespace reel::detail {
inline namespace REEL_TARGET {

/// The largest of some numbers, and Σ e^(x − largest); −∞ and 0 if there are none.
template <class Wide>
struct Exponents {
  Wide largest, sum;

  REEL_HOST_DEVICE void add(Wide x) {
    // e^(x − x), which is NaN for x = ∞.
    Wide own = x == -std::numeric_limits<Wide>::infinity() ? Wide(0) : Wide(1) + (x - x);
    *this = joined(*this, {x, own});
  }
  REEL_HOST_DEVICE static Exponents joined(Exponents a, Exponents b) {
    bool b_leads = b.largest > a.largest || b.largest != b.largest;
    Exponents first = b_leads ? b : a, second = b_leads ? a : b;
    // If both are infinite, their difference is NaN.
    if (second.sum != 0) first.sum += second.sum * std::exp(second.largest - first.largest);
    return first;
  }
};

/// The exponents of given(0), …, given(length − 1), in one pass: the sum so far is rescaled when a larger number
/// occurs.
template <class Wide, class Group, class Given>
REEL_DEVICE Exponents<Wide> exponents_of_row(Group& group, std::int64_t length, const Given& given) {
  auto partial = group.template per_thread<Exponents<Wide>>();
  group.each([&](int thread) {
    Exponents<Wide> all{-std::numeric_limits<Wide>::infinity(), 0};
    for (std::int64_t i = thread; i < length; i += group.size()) all.add(given(i));
    partial[thread] = all;
  });
  return group.reduce(partial, [](Exponents<Wide> a, Exponents<Wide> b) { return Exponents<Wide>::joined(a, b); });
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
