#include <reel/ops/grid_sample.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <reel/ops/activation.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

// affine_grid: y_n,p = theta_n (p, 1)

namespace {

// `count` numbers from −1 to 1, the middles of as many equal parts unless corners are aligned.
Tensor grid_axis(std::int64_t count, bool align_corners, const Tensor& like) {
  double end = count <= 1 ? 0 : align_corners ? 1 : 1 - 1 / static_cast<double>(count);
  return linspace(-end, end, count, {.dtype = like.dtype(), .device = like.device()});
}

}  // namespace

Tensor affine_grid(const Arg& theta, const Shape& size, AffineGridOptions options) {
  const char* name = "affine_grid";
  const Tensor& tensor = tensor_of(name, theta);
  Location where = theta.location();
  check_floating(name, tensor, where);
  int spatial = size.rank();
  if ((spatial != 2 && spatial != 3) || tensor.rank() != 3 || tensor.size(1) != spatial ||
      tensor.size(2) != spatial + 1 || *std::min_element(size.begin(), size.end()) < 0)
    fail<ShapeError>(name, where, "takes theta (N, 2, 3) and a size (H, W), or (N, 3, 4) and (D, H, W), not {} and {}",
                     to_string(tensor.shape()), to_string(size));
  OpScope caller(where, name);
  Tensor map = widened(tensor);
  Shape front{map.size(0)};
  for (int i = 0; i < spatial; ++i) front.push_back(1);
  front.push_back(spatial);
  // Column k of theta belongs to the axis of size k from the end; the last one is added.
  auto column = [&](int k) { return reshape(select(map, 2, k), front); };
  Tensor points = column(spatial);
  for (int k = 0; k < spatial; ++k) {
    Shape along;
    for (int i = 0; i <= spatial; ++i) along.push_back(1);
    int axis = spatial - 1 - k;
    along[axis] = size[axis];
    points = points + column(k) * reshape(grid_axis(size[axis], options.align_corners, map), along);
  }
  return to_if_needed(points, tensor.dtype());
}

// grid_sample: y_n,c,p = x_n,c at the point g_n,p

namespace {

// Positions p < low or p > low + span mirrored at these ends until they lie between.
Tensor reflected_positions(const Tensor& p, double low, double span) {
  if (span == 0) return zeros_like(p);
  Tensor finite = where(isfinite(p), p, low);
  Tensor away = where(finite < low, low - finite, finite - low);
  Tensor rest = mod(away, span), odd = mod(floor_divide(stop_gradient(away), span), 2.0) == 1.0;
  return where(odd, span - rest, rest) + low;
}

// Coordinates in [−1, 1] as positions of pixels along an axis, which the padding brings near the image.
Tensor pixel_positions(const Tensor& coordinates, std::int64_t size, const GridSampleOptions& options) {
  auto count = static_cast<double>(size);
  Tensor c = where(isnan(coordinates), -1.0, coordinates) + 1.0;
  Tensor p = options.align_corners ? c * 0.5 * (count - 1) : (c * count - 1.0) * 0.5;
  // One pixel beyond the ends nothing is left but zeros; an infinite position would make them NaN.
  if (options.padding == GridPadding::zeros) return clamp(p, -1.0, count);
  if (options.padding == GridPadding::reflection)
    p = reflected_positions(p, options.align_corners ? 0 : -0.5, options.align_corners ? count - 1 : count);
  // At the ends the derivative is 0, unlike clamp's.
  return hardtanh(p, {.low = 0, .high = count - 1});
}

// One of the pixels along an axis that a point takes its value from.
struct Tap {
  Tensor index;   // i64, within the image
  Tensor inside;  // whether it was before
  Tensor weight;  // undefined: 1
};

Tap tap_at(const Tensor& whole, Tensor weight, std::int64_t size) {
  double last = static_cast<double>(size - 1);
  Tensor inside = logical_and(whole >= 0.0, whole <= last);
  return {to(clamp(whole, 0.0, last), DType::i64), inside, std::move(weight)};
}

std::vector<Tap> taps_along(const Tensor& p, std::int64_t size, Interpolation mode) {
  Tensor fixed = stop_gradient(p);
  if (mode == Interpolation::nearest) return {tap_at(round(fixed), {}, size)};
  Tensor before = floor(fixed), share = p - before;
  return {tap_at(before, 1.0 - share, size), tap_at(before + 1.0, share, size)};
}

void check_grid(const char* name, const Tensor& x, const Tensor& grid, const GridSampleOptions& options,
                Location where) {
  check_floating(name, x, where);
  if (grid.dtype() != x.dtype())
    fail<DTypeError>(name, where, "the grid {} does not have the dtype of x {}; convert it with to(…, {})",
                     describe(grid), describe(x), name_of(x.dtype()));
  check_same_device(name, x, grid, where);
  if (options.mode != Interpolation::linear && options.mode != Interpolation::nearest)
    fail<Error>(name, where, "interpolates linearly or by the nearest pixel only");
  int spatial = x.rank() - 2;
  if ((spatial != 2 && spatial != 3) || grid.rank() != x.rank() || grid.size(0) != x.size(0) ||
      grid.size(-1) != spatial)
    fail<ShapeError>(
        name, where,
        "takes x (N, C, H, W) and a grid (N, h, w, 2), or (N, C, D, H, W) and (N, d, h, w, 3), not {} and {}",
        to_string(x.shape()), to_string(grid.shape()));
  for (int axis = 2; axis < x.rank(); ++axis)
    if (x.size(axis) == 0) fail<ShapeError>(name, where, "x {} has no pixels", describe(x));
}

}  // namespace

Tensor grid_sample(const Arg& given_x, const Arg& given_grid, GridSampleOptions options) {
  return with_memory_error("grid_sample", given_x.location(), [&] {
    const char* name = "grid_sample";
    const AutocastArg x_arg(Precision::full, given_x), grid_arg(Precision::full, given_grid);
    const Tensor &x = tensor_of(name, x_arg), &grid = tensor_of(name, grid_arg);
    Location call_site = given_x.location();
    check_grid(name, x, grid, options, call_site);
    OpScope caller(call_site, name);
    int spatial = x.rank() - 2;
    Shape result{x.size(0), x.size(1)};
    std::int64_t points = 1, pixels = 1;
    for (int i = 0; i < spatial; ++i) {
      result.push_back(grid.size(1 + i));
      points *= grid.size(1 + i);
      pixels *= x.size(2 + i);
    }
    Tensor image = reshape(widened(x), {x.size(0), x.size(1), pixels});
    Tensor coordinates = reshape(widened(grid), {x.size(0), points, spatial});
    std::vector<std::vector<Tap>> taps;
    for (int i = 0; i < spatial; ++i) {
      std::int64_t size = x.size(2 + i);
      Tensor p = pixel_positions(select(coordinates, 2, spatial - 1 - i), size, options);
      taps.push_back(taps_along(p, size, options.mode));
    }
    bool linear = options.mode == Interpolation::linear;
    Tensor y;
    for (unsigned corner = 0; corner < (linear ? 1U << spatial : 1U); ++corner) {
      Tensor index, inside, weight;
      for (int i = 0; i < spatial; ++i) {
        const Tap& tap = taps[static_cast<std::size_t>(i)][corner >> i & 1];
        index = i == 0 ? tap.index : index * x.size(2 + i) + tap.index;
        inside = i == 0 ? tap.inside : logical_and(inside, tap.inside);
        if (linear) weight = i == 0 ? tap.weight : weight * tap.weight;
      }
      Tensor read = gather(image, 2, expand(unsqueeze(index, 1), {x.size(0), x.size(1), points}));
      Tensor value = where(unsqueeze(inside, 1), read, 0.0);
      if (linear) value = value * unsqueeze(weight, 1);
      y = y.defined() ? y + value : value;
    }
    return to_if_needed(reshape(y, result), x.dtype());
  });
}

}  // namespace reel
