#pragma once

#include <cmath>
#include <cstdint>

#include "element.h"
#include "grid.h"
#include "packed_row.h"

// Sums by the threads of a group. A few terms at a time are added in W, and their sums in f64.

namespace reel::detail::inline REEL_TARGET {

template <int count>
struct Sums {
  double of[count];
  REEL_HOST_DEVICE friend Sums operator+(Sums a, const Sums& b) {
    for (int k = 0; k < count; ++k) a.of[k] += b.of[k];
    return a;
  }
};

/// Σ over [begin, end) of the terms that `term(i, sums)` adds to each of `count` sums.
template <class W, int count, class Group, class Term>
REEL_DEVICE Sums<count> sums_of(Group& group, std::int64_t begin, std::int64_t end, const Term& term) {
  constexpr int at_once = 16;
  auto partial = group.template per_thread<Sums<count>>();
  group.each([&](int thread) {
    Sums<count> total{};
    for (std::int64_t i = begin + thread; i < end;) {
      W few[count] = {};
      for (int k = 0; k < at_once && i < end; ++k, i += group.size()) term(i, few);
      for (int k = 0; k < count; ++k) total.of[k] += static_cast<double>(few[k]);
    }
    partial[thread] = total;
  });
  return group.reduce(partial, [](const Sums<count>& a, const Sums<count>& b) { return a + b; });
}

/// Σ over a row of the terms that `term(thread, k, p, sums)` adds to each of `count` sums for pack p, the thread's k-th:
/// those of a chunk are added in W. load(thread, k, p) keeps a pack.
template <class W, int count, class Group, int lanes, class Load, class Term>
REEL_DEVICE Sums<count> sums_of_packs(Group& group, int pass, const PackLoop<lanes>& loop, const Load& load,
                                      const Term& term) {
  auto partial = group.template per_thread<Sums<count>>();
  group.each([&](int thread) {
    Sums<count> total{};
    W few[count] = {};
    loop.run(
        pass, thread, [&](int k, std::int64_t p) { load(thread, k, p); },
        [&](int k, std::int64_t p) { term(thread, k, p, few); },
        [&] {
          for (int k = 0; k < count; ++k) {
            total.of[k] += static_cast<double>(few[k]);
            few[k] = 0;
          }
        });
    partial[thread] = total;
  });
  return group.reduce(partial, [](const Sums<count>& a, const Sums<count>& b) { return a + b; });
}

/// A number as the sum of two of W, so that the difference x − mean of large numbers keeps its precision.
template <class W>
struct HighLow {
  W high, low;
  REEL_HOST_DEVICE explicit HighLow(double number)
      : high(static_cast<W>(number)), low(static_cast<W>(number - static_cast<double>(high))) {}
  REEL_HOST_DEVICE W before(W x) const { return (x - high) - low; }
};

/// Count, mean and Σ (x − mean)² of some elements.
struct Moments {
  double count, mean, squares;
  REEL_HOST_DEVICE double variance() const { return squares / count; }
  /// Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979).
  REEL_HOST_DEVICE static Moments joined(const Moments& a, const Moments& b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    double total = a.count + b.count, apart = b.mean - a.mean;
    return {total, a.mean + apart * (b.count / total),
            a.squares + b.squares + apart * apart * (a.count * b.count / total)};
  }
};

/// The moments of a row of `elements`, computed about a number close to their mean, so that large elements with small
/// differences keep their precision. Its passes are 0 and 1. `kept`: of each thread, the packs that load(thread, k, p) keeps.
template <class T, class Group, int lanes, class Kept, class Load>
REEL_DEVICE Moments moments_of_packs(Group& group, const PackLoop<lanes>& loop, std::int64_t elements, const Kept& kept,
                                     const Load& load) {
  using W = Wide<T>;
  if (elements == 0) return {0, 0, 0};
  auto count = static_cast<double>(elements);
  double sum = sums_of_packs<W, 1>(group, 0, loop, load, [&](int thread, int k, std::int64_t, W(&sums)[1]) {
                 for (T x : kept[thread].of[k].element) sums[0] += loaded(x);
               }).of[0];
  W centre = static_cast<W>(sum / count);
  Sums<2> about = sums_of_packs<W, 2>(group, 1, loop, load, [&](int thread, int k, std::int64_t, W(&sums)[2]) {
    for (T x : kept[thread].of[k].element) {
      W away = loaded(x) - centre;
      sums[0] += away;
      sums[1] += away * away;
    }
  });
  return {count, static_cast<double>(centre) + about.of[0] / count, about.of[1] - about.of[0] * about.of[0] / count};
}

/// The moments of such a row about zero, by pass 0: the mean is 0.
template <class T, class Group, int lanes, class Kept, class Load>
REEL_DEVICE Moments moments_about_zero(Group& group, const PackLoop<lanes>& loop, std::int64_t elements,
                                       const Kept& kept, const Load& load) {
  using W = Wide<T>;
  Sums<1> squares = sums_of_packs<W, 1>(group, 0, loop, load, [&](int thread, int k, std::int64_t, W(&sums)[1]) {
    for (T element : kept[thread].of[k].element) {
      W x = loaded(element);
      sums[0] += x * x;
    }
  });
  return {static_cast<double>(elements), 0, squares.of[0]};
}

REEL_HOST_DEVICE inline double inverse_deviation(double variance, double epsilon) {
  return 1 / std::sqrt(variance + epsilon);
}

}  // namespace reel::detail::inline REEL_TARGET
