#pragma once

#include <algorithm>
#include <cstdint>

#include "../products/transpose.h"
#include "moments.h"

namespace reel::detail::inline REEL_TARGET {

/// Short rows, one for each lane of a vector, transposed: the sums of a row, its root and its quotients take longer than its
/// elements. Every number is added as `Moments` adds those of one row, so that results do not depend on how many rows there are.
template <class W>
class ShortRows {
  using V = Vector<W>;

 public:
  static constexpr std::int64_t count = V::lanes, longest = 64;
  explicit ShortRows(std::int64_t length) : length_(length) {}

  template <class T>
  void read(const T* from) {
    W buffer[longest * count];
    const W* here = read_piece(from, length_ * count, buffer);
    transpose_panel(elements_, count, here, length_, length_, count, 0);
  }

  void find_moments(bool centred, double* means, double* variances) const {
    auto n = static_cast<double>(length_), inverse = 1 / n;
    W first[count], centres[count], apart[count], squares[count];
    if (!centred) {
      add([&](V sum, std::int64_t i) { return multiply_add(element(i), element(i), sum); }).store(squares);
      for (std::int64_t l = 0; l < count; ++l) {
        means[l] = 0;
        variances[l] = static_cast<double>(squares[l]) / n;
      }
      return;
    }
    add([&](V sum, std::int64_t i) { return sum + element(i); }).store(first);
    for (std::int64_t l = 0; l < count; ++l) centres[l] = static_cast<W>(static_cast<double>(first[l]) * inverse);
    V shift = V::load(centres);
    add([&](V sum, std::int64_t i) { return sum + (element(i) - shift); }).store(apart);
    add([&](V sum, std::int64_t i) {
      V away = element(i) - shift;
      return multiply_add(away, away, sum);
    }).store(squares);
    for (std::int64_t l = 0; l < count; ++l) {
      double sum = static_cast<double>(apart[l]), more = sum * inverse;
      means[l] = static_cast<double>(centres[l]) + more;
      variances[l] = (static_cast<double>(squares[l]) - sum * more) / n;
    }
  }

  /// x = f(i, x − mean) for element i of each row.
  template <class F>
  void map(const double* means, F f) {
    W high[count], low[count];
    for (std::int64_t l = 0; l < count; ++l) {
      high[l] = static_cast<W>(means[l]);
      low[l] = static_cast<W>(means[l] - static_cast<double>(high[l]));
    }
    V more = V::load(high), less = V::load(low);
    for (std::int64_t i = 0; i < length_; ++i) set_element(i, f(i, (element(i) - more) - less));
  }
  /// The sums of the rows by add(sum, i) for each element i, in the order of add_piece and sum_of_lanes.
  template <class Add>
  V add(Add add) const {
    typename V::Raw sums[count] = {};
    std::int64_t used = std::min(count, length_);
    for (std::int64_t l = 0; l < used; ++l) {
      V four[4] = {V(0), V(0), V(0), V(0)};
      std::int64_t i = l;
      for (; i - l + 4 * count <= length_; i += 4 * count)
        for (int k = 0; k < 4; ++k) four[k] = add(four[k], i + k * count);
      for (; i - l + count <= length_; i += count) four[0] = add(four[0], i);
      if (i < length_) four[1] = add(four[1], i);
      sums[l] = ((four[0] + four[1]) + (four[2] + four[3])).raw;
    }
    for (std::int64_t half = count / 2; half > 0; half /= 2) {
      for (std::int64_t l = 0; l + half < used; ++l) sums[l] = (V(sums[l]) + V(sums[l + half])).raw;
      used = std::min(used, half);
    }
    return sums[0];
  }

  template <class T>
  void write(T* to, Results<T>& results) const {
    results.put(to, length_ * count,
                [&](W* out, auto) { transpose_panel(out, length_, elements_, count, count, length_, 0); });
  }

  /// Element i of each row.
  V element(std::int64_t i) const { return V::load(elements_ + i * count); }
  void set_element(std::int64_t i, V v) { v.store(elements_ + i * count); }

 private:
  std::int64_t length_;
  alignas(64) W elements_[longest * count];
};

}  // namespace reel::detail::inline REEL_TARGET
