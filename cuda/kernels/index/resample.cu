#include <reel/interpolation.h>

#include <cmath>
#include <type_traits>

#include "../../device/launch.h"
#include "../../device/split.h"
#include "unfold.h"

namespace reel::detail {
inline namespace REEL_TARGET {
namespace {

// Calls f(input element, weight) for the taps of output element `o` of an axis.
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

  template <class F>
  REEL_DEVICE void for_each(std::int64_t o, const F& f) const {
    auto place = static_cast<double>(o);
    double coordinate = align_corners ? place * step : (place + 0.5) * step - 0.5;
    switch (mode) {
      case Interpolation::nearest:
        // In f32, as on the CPU, so that both choose one element.
        return f(clamped(static_cast<std::int64_t>(floorf(static_cast<float>(o) * static_cast<float>(step)))), 1.0);
      case Interpolation::linear: return linear(coordinate > 0 ? coordinate : 0, f);
      case Interpolation::cubic: return cubic(coordinate, f);
      case Interpolation::area: return area(o, f);
    }
  }

  // A range of output elements that includes all those to which an input element contributes.
  struct Reach {
    std::int64_t begin, end;
  };
  REEL_DEVICE Reach reach(std::int64_t i) const {
    if (mode == Interpolation::area) return {i * new_size / old_size, ((i + 1) * new_size + old_size - 1) / old_size};
    // Taps are within 2 input elements of the coordinate, which may have been rounded to f32; those beyond the ends are
    // clamped to the first or last element.
    auto place = static_cast<double>(i);
    double margin = 3 + place * 4e-7;
    Reach whole{0, new_size};
    if (i > 0 && step > 0) whole.begin = clamped_new(floor((place - margin) / step) - 1);
    if (i < old_size - 1 && step > 0) whole.end = clamped_new(ceil((place + margin) / step) + 2);
    return whole;
  }

 private:
  REEL_DEVICE std::int64_t clamped(std::int64_t index) const {
    return index < 0 ? 0 : index < old_size ? index : old_size - 1;
  }
  REEL_DEVICE std::int64_t clamped_new(double place) const {
    return place < 0 ? 0 : place < static_cast<double>(new_size) ? static_cast<std::int64_t>(place) : new_size;
  }

  template <class F>
  REEL_DEVICE void linear(double coordinate, const F& f) const {
    double below = fmin(floor(coordinate), static_cast<double>(old_size - 1)), weight = fmin(coordinate - below, 1.0);
    auto index = static_cast<std::int64_t>(below);
    f(index, 1 - weight);
    if (weight > 0) f(clamped(index + 1), weight);
  }

  template <class F>
  REEL_DEVICE void cubic(double coordinate, const F& f) const {
    constexpr double a = -0.75;
    auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    double below = floor(coordinate), t = coordinate - below;
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

// A tensor as (outer, axis, inner).
struct Lines {
  Split inner, size;

  Lines(const View& x, std::int64_t axis, std::int64_t axis_size) {
    std::int64_t inner_size = 1;
    for (std::int64_t k = axis + 1; k < x.rank; ++k) inner_size *= x.dims[k];
    inner = Split(inner_size, x.numel);
    size = Split(axis_size, x.numel);
    count = inner_size;
  }
  struct Spot {
    std::int64_t outer, at, inner;
  };
  REEL_DEVICE Spot spot(std::int64_t i) const {
    auto low = inner(i), high = size(low.whole);
    return {high.whole, high.rest, low.rest};
  }
  std::int64_t count;  // of adjacent elements
};

template <class T>
struct Resample {
  Taps taps;
  Lines lines;
  T* out;
  const T* x;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto spot = lines.spot(i);
    const T* from = x + spot.outer * taps.old_size * lines.count + spot.inner;
    T sum = 0;
    taps.for_each(
        spot.at, [&](std::int64_t index, double weight) { sum += static_cast<T>(weight) * from[index * lines.count]; });
    out[i] = sum;
  }
};

template <class T>
struct ResampleTransposed {
  Taps taps;
  Lines lines;
  T* out;
  const T* d;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto spot = lines.spot(i);
    const T* from = d + spot.outer * taps.new_size * lines.count + spot.inner;
    auto reach = taps.reach(spot.at);
    T sum = 0;
    for (std::int64_t o = reach.begin; o < reach.end; ++o)
      taps.for_each(o, [&](std::int64_t index, double weight) {
        if (index == spot.at) sum += static_cast<T>(weight) * from[o * lines.count];
      });
    out[i] = sum;
  }
};

void resample(const View& out, const View& x, const AxisTaps& axis) {
  Taps taps(axis);
  Lines lines(out, axis.axis, axis.new_size);
  if (out.dtype == DType::f64)
    for_each(out.numel, Resample<double>{taps, lines, out.as<double>(), x.as<const double>()});
  else
    for_each(out.numel, Resample<float>{taps, lines, out.as<float>(), x.as<const float>()});
}

void resample_transposed(const View& out, const View& d, const AxisTaps& axis) {
  Taps taps(axis);
  Lines lines(out, axis.axis, axis.old_size);
  if (out.dtype == DType::f64)
    for_each(out.numel, ResampleTransposed<double>{taps, lines, out.as<double>(), d.as<const double>()});
  else
    for_each(out.numel, ResampleTransposed<float>{taps, lines, out.as<float>(), d.as<const float>()});
}

}  // namespace

void fill_resample(KernelTable& table) {
  static constinit ResampleKernels kernels{};
  kernels.resample = resample;
  kernels.resample_transposed = resample_transposed;
  fill_unfold(kernels);
  table.resample = &kernels;
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
