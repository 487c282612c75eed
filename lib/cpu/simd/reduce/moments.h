#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <reel/detail/immovable.h>

#include "../vector/half_rows.h"
#include "../vector/streaming.h"
#include "../vector/vector.h"
#include "../vector/wide.h"

// Sums over contiguous elements, a piece at a time, so that several passes over a piece find it in the cache. This
// header is compiled once per instruction set.

namespace reel::detail::inline REEL_TARGET {

/// The number of elements of a piece.
inline constexpr std::int64_t piece = 1024;

/// Calls f(start, count) for pieces that make up [0, n).
template <class F>
void for_each_piece(std::int64_t n, F f) {
  for (std::int64_t start = 0; start < n; start += piece) f(start, std::min(piece, n - start));
}

/// Up to a piece of elements, converted into `buffer` unless they can be read in place.
template <class T>
const Wide<T>* read_piece(const T* from, std::int64_t count, Wide<T>* buffer) {
  if constexpr (std::is_same_v<T, Wide<T>>)
    return from;
  else {
    widen_row(buffer, from, count);
    return buffer;
  }
}

/// How whole vectors are stored: into the caches, or past them to aligned addresses.
struct IntoCache {
  template <class W>
  static void store(Vector<W> v, W* to) {
    v.store(to);
  }
};
struct PastCache {
  template <class W>
  static void store(Vector<W> v, W* to) {
    v.stream(to);
  }
};

/// Writes results: in place, through a buffer if they are converted, or with streaming stores.
template <class T>
class Results : Immovable {
 public:
  explicit Results(std::int64_t count) : streams_(count * static_cast<std::int64_t>(sizeof(T)) >= streaming_bytes) {}
  /// `write` stores up to a piece of results at the address that it gets, in the way that it gets, for `for_each_vector`.
  template <class Write>
  void put(T* to, std::int64_t count, Write write) {
    if constexpr (std::is_same_v<T, Wide<T>>) {
      if (!streams_) return write(to, IntoCache());
      // Large outputs take less time from registers than through the buffer.
      if (reinterpret_cast<std::uintptr_t>(to) % sizeof(Vector<T>) == 0) return write(to, PastCache());
      write(buffer_, IntoCache());
      copy_streaming(to, buffer_, count * static_cast<std::int64_t>(sizeof(T)));
    } else {
      write(buffer_, IntoCache());
      for (std::int64_t i = 0; i < count; ++i) to[i] = narrowed<T>(buffer_[i]);
    }
  }
  ~Results() {
    if (streams_) end_streaming();
  }

 private:
  bool streams_;
  Wide<T> buffer_[piece];
};

/// Calls f(i, load, store) for each vector of up to a piece; the last one may be partial.
template <class W, class F, class Store = IntoCache>
void for_each_vector(std::int64_t count, F f, Store = {}) {
  using V = Vector<W>;
  std::int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes)
    f(
        i, [](const W* from) { return V::load(from); }, [](V v, W* to) { Store::store(v, to); });
  if (std::int64_t rest = count - i)
    f(
        i, [=](const W* from) { return V::load(from, rest); }, [=](V v, W* to) { v.store(to, rest); });
}

/// A vector of partial sums.
template <class W>
struct Sum {
  Vector<W> lanes = Vector<W>(0);
  void add(Vector<W> v) { lanes = lanes + v; }
  void add_product(Vector<W> a, Vector<W> b) { lanes = multiply_add(a, b, lanes); }
};

/// Loads whole vectors, or the first `rest` elements of one and zeros behind them.
template <class W>
struct WholeVector {
  Vector<W> operator()(const W* from) const { return Vector<W>::load(from); }
  Vector<W> used(Vector<W> v) const { return v; }
};
template <class W>
struct PartialVector {
  std::int64_t rest;
  Vector<W> operator()(const W* from) const { return Vector<W>::load(from, rest); }
  /// v with zeros behind the end.
  Vector<W> used(Vector<W> v) const {
    return hn::IfThenElseZero(hn::FirstN(typename Vector<W>::Tag(), static_cast<std::size_t>(rest)), v.raw);
  }
};

/// Adds terms over up to a piece: `terms(sums, i, load)` adds those at i to each of `sum_count` sums; `load` is a
/// WholeVector or a PartialVector. Four independent sums hide the latency of additions.
template <class W, int sum_count, class Terms>
void add_piece(double (&totals)[sum_count], std::int64_t count, Terms terms) {
  using V = Vector<W>;
  Sum<W> sums[4][sum_count];
  std::int64_t i = 0;
  for (; i + 4 * V::lanes <= count; i += 4 * V::lanes)
    for (int k = 0; k < 4; ++k) terms(sums[k], i + k * V::lanes, WholeVector<W>());
  for (; i + V::lanes <= count; i += V::lanes) terms(sums[0], i, WholeVector<W>());
  if (count > i) terms(sums[1], i, PartialVector<W>{count - i});
  for (int s = 0; s < sum_count; ++s)
    totals[s] += sum_of_lanes((sums[0][s].lanes + sums[1][s].lanes) + (sums[2][s].lanes + sums[3][s].lanes));
}

/// Count, mean and Σ (x − mean)² of the elements so far. The moments of a piece are computed about a number close to its
/// mean, so that large elements with small differences keep their precision.
class Moments {
 public:
  template <class W>
  void add(const W* x, std::int64_t count) {
    using V = Vector<W>;
    double first[1] = {};
    add_piece<W>(first, count, [&](Sum<W>(&sum)[1], std::int64_t i, auto load) { sum[0].add(load(x + i)); });
    // The second pass waits for the centre, and a division would take longer than a product.
    double n = static_cast<double>(count), inverse = 1 / n;
    W centre = static_cast<W>(first[0] * inverse);
    V shift = V::repeat(centre);
    double about[2] = {};
    add_piece<W>(about, count, [&](Sum<W>(&sums)[2], std::int64_t i, auto load) {
      V away = load.used(load(x + i) - shift);
      sums[0].add(away);
      sums[1].add_product(away, away);
    });
    double apart = about[0] * inverse;
    join(n, static_cast<double>(centre) + apart, about[1] - about[0] * apart);
  }
  /// Adds elements with moments about zero: mean() is 0.
  template <class W>
  void add_about_zero(const W* x, std::int64_t count) {
    double squares[1] = {};
    add_piece<W>(squares, count, [&](Sum<W>(&sum)[1], std::int64_t i, auto load) {
      Vector<W> here = load(x + i);
      sum[0].add_product(here, here);
    });
    count_ += static_cast<double>(count);
    squares_ += squares[0];
  }
  double mean() const { return mean_; }
  double variance() const { return squares_ / count_; }

 private:
  // Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979).
  void join(double count, double mean, double squares) {
    if (count_ == 0) {
      count_ = count;
      mean_ = mean;
      squares_ = squares;
      return;
    }
    double total = count_ + count, apart = mean - mean_;
    mean_ += apart * (count / total);
    squares_ += squares + apart * apart * (count_ * count / total);
    count_ = total;
  }

  double count_ = 0, mean_ = 0, squares_ = 0;
};

inline double inverse_deviation(double variance, double epsilon) { return 1 / std::sqrt(variance + epsilon); }

/// A number as the sum of two of W, so that the difference x − mean of large numbers keeps its precision.
template <class W>
struct Split {
  Vector<W> high, low;
  explicit Split(double number)
      : high(Vector<W>::repeat(static_cast<W>(number))),
        low(Vector<W>::repeat(static_cast<W>(number - static_cast<double>(static_cast<W>(number))))) {}
  Vector<W> before(Vector<W> x) const { return (x - high) - low; }
};

}  // namespace reel::detail::inline REEL_TARGET
