#include <reel/ops/statistics.h>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>

#include <cmath>

#include "../../core/op_error.h"
#include "../if_needed.h"
#include "reduction.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* quantile_name = "quantile";

// q as f64, of rank 0 or 1.
Tensor fractions_of(const Tensor& x, const Arg& q, Location where) {
  if (!q.is_tensor()) {
    if (!(q.number() >= 0 && q.number() <= 1))
      fail<Error>(quantile_name, where, "q is {}, which is outside [0, 1]", q.number());
    return full({}, q.number(), {.dtype = DType::f64, .device = x.device()});
  }
  const Tensor& tensor = tensor_of(quantile_name, q);
  check_floating(quantile_name, tensor, where);
  check_same_device(quantile_name, x, tensor, where);
  if (tensor.rank() > 1) fail<ShapeError>(quantile_name, where, "q is a number or a vector, not {}", describe(tensor));
  // On a GPU the answer would have to be waited for.
  if (tensor.device() == cpu && !value_to_check<bool>(all(logical_and(tensor >= 0.0, tensor <= 1.0))))
    fail<Error>(quantile_name, where, "an element of q {} is outside [0, 1]", describe(tensor));
  return to_if_needed(tensor, DType::f64);
}

Tensor at_positions(const Tensor& sorted, const Tensor& positions) {
  return take(sorted, to(positions, DType::i64), -1);
}

// The quantiles of the rows of (…, N), at fractions of rank 0 or (K): (…) or (…, K).
Tensor quantiles_of_rows(const Tensor& rows, const Tensor& fractions, QuantileInterpolation interpolation) {
  Tensor sorted = sort(rows, -1).values, position = fractions * static_cast<double>(rows.size(-1) - 1);
  Tensor below = floor(position), fraction = to_if_needed(position - below, rows.dtype()), y;
  auto lower = [&] { return at_positions(sorted, below); };
  auto higher = [&] { return at_positions(sorted, ceil(position)); };
  switch (interpolation) {
    case QuantileInterpolation::lower: y = lower(); break;
    case QuantileInterpolation::higher: y = higher(); break;
    case QuantileInterpolation::nearest: y = at_positions(sorted, round(position)); break;
    default: {
      Tensor a = lower(), b = higher();
      Tensor between = interpolation == QuantileInterpolation::linear ? lerp(a, b, fraction) : a * 0.5 + b * 0.5;
      // The difference of two infinities is NaN.
      Tensor is_exact = logical_or(fraction == 0.0, logical_and(isinf(a), a == b));
      y = where(is_exact, a, between);
    }
  }
  // NaN is sorted behind the numbers.
  Tensor last = slice(sorted, -1, -1);
  if (fractions.rank() == 0) last = squeeze(last, -1);
  return where(isnan(last), last, y);
}

// The quantile of the rows of (…, N) at one fraction: (…).
Tensor quantile_of_rows(const Tensor& rows, double q, QuantileInterpolation interpolation, Location where) {
  double position = q * static_cast<double>(rows.size(-1) - 1), below = std::floor(position);
  std::int64_t ranks[] = {static_cast<std::int64_t>(below), static_cast<std::int64_t>(std::ceil(position))};
  auto element = [&](std::int64_t rank) {
    return select(gather(rows, -1, places_of_ranks(rows, std::span(&rank, 1), where)), -1, 0);
  };
  switch (interpolation) {
    case QuantileInterpolation::lower: return element(ranks[0]);
    case QuantileInterpolation::higher: return element(ranks[1]);
    case QuantileInterpolation::nearest: return element(static_cast<std::int64_t>(std::nearbyint(position)));
    default: break;
  }
  if (ranks[0] == ranks[1]) return element(ranks[0]);
  Tensor both = gather(rows, -1, places_of_ranks(rows, ranks, where)), a = select(both, -1, 0), b = select(both, -1, 1);
  Tensor fraction = full({}, position - below, {.dtype = rows.dtype(), .device = rows.device()});
  Tensor between = interpolation == QuantileInterpolation::linear ? lerp(a, b, fraction) : a * 0.5 + b * 0.5;
  // The difference of two infinities is NaN.
  return reel::where(logical_and(isinf(a), a == b), a, between);
}

}  // namespace

Tensor quantile(const Arg& arg, const Arg& q, const Axes& axes, QuantileOptions options) {
  const Tensor& given = tensor_of(quantile_name, arg);
  Location where = arg.location();
  AxisSet set = axis_set(quantile_name, given, axes, where);
  check_not_of_nothing(quantile_name, "quantile", given, set, where);
  OpScope caller(where, quantile_name);
  Tensor fractions = fractions_of(given, q, where), x = is_floating(given.dtype()) ? given : to(given, DType::f32);
  Shape kept = kept_shape(x, set), shape;
  bool several = fractions.rank() == 1;
  if (x.rank() == max_rank && several)
    fail<ShapeError>(quantile_name, where, "x {} has 8 axes already: there is no room for that of {} quantiles",
                     describe(x), fractions.numel());
  if (several) shape.push_back(fractions.numel());
  for (std::int64_t size : kept) shape.push_back(size);
  AxisSet reduced = axes_between(x.shape(), kept);
  Tensor y;
  if (shape.numel() == 0) {
    // Without elements, but tracked if x is.
    y = expand(sum(x), shape);
  } else {
    Tensor rows = reduced == 0 ? unsqueeze(x, -1) : join_axes(x, reduced);
    y = q.is_tensor() ? quantiles_of_rows(rows, fractions, options.interpolation)
                      : quantile_of_rows(rows, q.number(), options.interpolation, where);
    if (several) {
      Shape order{y.rank() - 1};
      for (int i = 0; i + 1 < y.rank(); ++i) order.push_back(i);
      y = permute(y, order);
    }
    y = reshape(y, shape);
  }
  return without_axes(std::move(y), several ? set << 1 : set, options.keepdims, where);
}

}  // namespace reel
