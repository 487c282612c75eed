#include <reel/ops/resample.h>

#include <cmath>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/resample.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"

namespace reel {

using namespace detail;

namespace {

Tensor resample(const OpInfo& op, const Tensor& x, std::int64_t size, const AxisTaps& taps, Location where) {
  Shape shape = x.shape();
  shape[static_cast<int>(taps.axis)] = size;
  Tensor packed = contiguous_if_needed(Arg(x, where));
  return invoke(op, {&packed}, {shape, x.dtype(), x.device()}, where, bytes_of(taps));
}

extern const OpInfo interpolate_op;
extern const OpInfo interpolate_transposed_op;

// y = W x along an axis;  dx = Wᵀ d

constexpr OpInfo interpolate_op{
    .name = "interpolate",
    .forward =
        [](Call& call) {
          kernels(call.output().device).resample->resample(call.output(), call.input(0), call.attributes<AxisTaps>());
        },
    .gradient =
        [](Gradient& g) {
          const auto& taps = g.attributes<AxisTaps>();
          g.accumulate(0, resample(interpolate_transposed_op, g.output(), taps.old_size, taps, g.where()));
        },
    .joining = by_rows,
};

// z = Wᵀ d along an axis;  dd = W e

constexpr OpInfo interpolate_transposed_op{
    .name = "interpolate_transposed",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .resample->resample_transposed(call.output(), call.input(0), call.attributes<AxisTaps>());
        },
    .gradient =
        [](Gradient& g) {
          const auto& taps = g.attributes<AxisTaps>();
          g.accumulate(0, resample(interpolate_op, g.output(), taps.new_size, taps, g.where()));
        },
    .internal = true,
};

constexpr const char* name = "interpolate";

void check_options(const Tensor& x, const InterpolateOptions& options, Location where) {
  check_floating(name, x, where);
  if (x.rank() < 3 || x.rank() > 5)
    fail<ShapeError>(name, where, "takes (N, C, d…) with 1 to 3 axes d…, not {}", describe(x));
  if (options.size.empty() == (options.scale == 0)) fail<Error>(name, where, "wants either a size or a scale");
  if (!options.size.empty() && options.size.rank() != x.rank() - 2)
    fail<ShapeError>(name, where, "{} has {} axes to resize, but the new size is {}", describe(x), x.rank() - 2,
                     to_string(options.size));
  if (options.size.empty() && !(options.scale > 0 && std::isfinite(options.scale)))
    fail<Error>(name, where, "the scale is {}, not above 0", options.scale);
  if (options.align_corners && options.mode != Interpolation::linear && options.mode != Interpolation::cubic)
    fail<Error>(name, where, "corners are aligned only by linear and cubic interpolation");
}

std::int64_t new_size(const Tensor& x, int axis, const InterpolateOptions& options, Location where) {
  // Positions are computed in f64, and sizes are multiplied.
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  std::int64_t old_size = x.size(axis);
  double scaled = std::floor(static_cast<double>(old_size) * options.scale);
  std::int64_t size = !options.size.empty()                 ? options.size[axis - 2]
                      : scaled < static_cast<double>(limit) ? static_cast<std::int64_t>(scaled)
                                                            : limit + 1;
  if (old_size < 1 || old_size > limit || size < 1 || size > limit)
    fail<ShapeError>(name, where, "cannot bring axis {} of {} to {} elements", axis, describe(x), size);
  return size;
}

AxisTaps taps_of(const Tensor& x, int axis, const InterpolateOptions& options, Location where) {
  std::int64_t size = new_size(x, axis, options, where), old_size = x.size(axis);
  double from = static_cast<double>(old_size), to = static_cast<double>(size);
  double step = options.size.empty() && options.mode != Interpolation::area ? 1 / options.scale : from / to;
  if (options.align_corners) step = size > 1 ? (from - 1) / (to - 1) : 0;
  return {axis, static_cast<std::int64_t>(options.mode), old_size, size, options.align_corners, step};
}

}  // namespace

Tensor interpolate(const Arg& x, const InterpolateOptions& options) {
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  check_options(tensor, options, where);
  OpScope caller(where, name);
  Tensor y = to_if_needed(tensor, tensor.dtype() == DType::f64 ? DType::f64 : DType::f32);
  // Axes that shrink come first, from outside, since those inside are added by vectors. Of the others the last comes first:
  // its elements are contiguous, so it is resized while the tensor is small.
  auto resize = [&](int axis, bool shrinks) {
    AxisTaps taps = taps_of(tensor, axis, options, where);
    if ((taps.new_size < taps.old_size) == shrinks) y = resample(interpolate_op, y, taps.new_size, taps, where);
  };
  for (int axis = 2; axis < tensor.rank(); ++axis) resize(axis, true);
  for (int axis = tensor.rank(); axis-- > 2;) resize(axis, false);
  return to_if_needed(y, tensor.dtype());
}

OpList detail::resample_ops() {
  static constexpr const OpInfo* ops[] = {&interpolate_op, &interpolate_transposed_op};
  return ops;
}

}  // namespace reel
