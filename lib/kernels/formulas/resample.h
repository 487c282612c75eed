#pragma once

#include <reel/interpolation.h>

#include <cmath>
#include <cstdint>

#include "../../core/target.h"
#include "../resample.h"

namespace reel::formulas::inline REEL_TARGET {

using detail::AxisTaps;

/// The input elements, with their weights, that make up the output elements of an axis.
struct Taps {
  std::int64_t old_size, new_size;
  double step;
  Interpolation mode;
  bool align_corners;

  explicit Taps(const AxisTaps& axis)
      : old_size(axis.old_size),
        new_size(axis.new_size),
        step(axis.step),
        mode(static_cast<Interpolation>(axis.mode)),
        align_corners(axis.align_corners != 0) {}

  /// Calls f(input element, weight) for the taps of output element `o`.
  template <class F>
  REEL_DEVICE void for_each(std::int64_t o, const F& f) const {
    auto place = static_cast<double>(o);
    double coordinate = align_corners ? place * step : (place + 0.5) * step - 0.5;
    switch (mode) {
      case Interpolation::nearest:
        // In f32, so that all implementations choose the same element.
        return f(clamped(static_cast<std::int64_t>(std::floor(static_cast<float>(o) * static_cast<float>(step)))), 1.0);
      case Interpolation::linear: return linear(coordinate > 0 ? coordinate : 0, f);
      case Interpolation::cubic: return cubic(coordinate, f);
      case Interpolation::area: return area(o, f);
    }
  }

 private:
  REEL_DEVICE std::int64_t clamped(std::int64_t index) const {
    return index < 0 ? 0 : index < old_size ? index : old_size - 1;
  }

  template <class F>
  REEL_DEVICE void linear(double coordinate, const F& f) const {
    double below = std::fmin(std::floor(coordinate), static_cast<double>(old_size - 1)),
           weight = std::fmin(coordinate - below, 1.0);
    auto index = static_cast<std::int64_t>(below);
    f(index, 1 - weight);
    if (weight > 0) f(clamped(index + 1), weight);
  }

  template <class F>
  REEL_DEVICE void cubic(double coordinate, const F& f) const {
    constexpr double a = -0.75;
    auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    double below = std::floor(coordinate), t = coordinate - below;
    auto index = static_cast<std::int64_t>(below);
    f(clamped(index - 1), far(t + 1));
    f(clamped(index), near(t));
    f(clamped(index + 1), near(1 - t));
    f(clamped(index + 2), far(2 - t));
  }

  template <class F>
  REEL_DEVICE void area(std::int64_t o, const F& f) const {
    std::int64_t begin = o * old_size / new_size, end = ((o + 1) * old_size + new_size - 1) / new_size;
    for (std::int64_t i = begin; i < end; ++i) f(clamped(i), 1 / static_cast<double>(end - begin));
  }
};

}  // namespace reel::formulas::inline REEL_TARGET
