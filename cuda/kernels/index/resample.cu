#include <cmath>

#include "../../../lib/kernels/formulas/resample.h"
#include "../../device/launch.h"
#include "../../device/split.h"
#include "../../runtime/cuda_kernels.h"
#include "unfold.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

using formulas::Taps;

// A range of output elements that includes all those to which an input element contributes.
struct Reach {
  std::int64_t begin, end;

  REEL_DEVICE Reach(const Taps& taps, std::int64_t i) : begin(0), end(taps.new_size) {
    if (taps.mode == Interpolation::area) {
      begin = i * taps.new_size / taps.old_size;
      end = ((i + 1) * taps.new_size + taps.old_size - 1) / taps.old_size;
      return;
    }
    // Taps are within 2 input elements of the coordinate, which may have been rounded to f32; those beyond the ends are
    // clamped to the first or last element.
    auto place = static_cast<double>(i);
    double margin = 3 + place * 4e-7;
    if (i > 0 && taps.step > 0) begin = clamped(floor((place - margin) / taps.step) - 1, taps.new_size);
    if (i < taps.old_size - 1 && taps.step > 0) end = clamped(ceil((place + margin) / taps.step) + 2, taps.new_size);
  }

 private:
  REEL_DEVICE static std::int64_t clamped(double place, std::int64_t size) {
    return place < 0 ? 0 : place < static_cast<double>(size) ? static_cast<std::int64_t>(place) : size;
  }
};

// A tensor as (outer, axis, inner).
struct OuterAxisInner {
  Split inner, size;

  OuterAxisInner(const View& x, std::int64_t axis, std::int64_t axis_size) {
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
  OuterAxisInner lines;
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
  OuterAxisInner lines;
  T* out;
  const T* d;

  REEL_DEVICE void operator()(std::int64_t i) const {
    auto spot = lines.spot(i);
    const T* from = d + spot.outer * taps.new_size * lines.count + spot.inner;
    Reach reach(taps, spot.at);
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
  OuterAxisInner lines(out, axis.axis, axis.new_size);
  if (out.dtype == DType::f64)
    for_each(out.numel, Resample<double>{taps, lines, out.as<double>(), x.as<const double>()});
  else
    for_each(out.numel, Resample<float>{taps, lines, out.as<float>(), x.as<const float>()});
}

void resample_transposed(const View& out, const View& d, const AxisTaps& axis) {
  Taps taps(axis);
  OuterAxisInner lines(out, axis.axis, axis.old_size);
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

}  // namespace reel::detail::inline REEL_TARGET
