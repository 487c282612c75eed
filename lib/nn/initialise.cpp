#include <reel/nn/initialise.h>

#include <cmath>
#include <numbers>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/linear_algebra.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"

namespace reel::nn {

using namespace detail;

namespace {

struct Fans {
  double in = 1, out = 1;
};

Fans fans_of(const char* name, const Shape& shape) {
  if (shape.rank() < 2)
    fail<ShapeError>(name, {}, "a parameter of shape {} has no fans; it takes a rank of 2 or more", to_string(shape));
  if (shape.rank() == 2) return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i) window *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

double fan_of(const char* name, const Shape& shape, Fan fan) {
  Fans fans = fans_of(name, shape);
  if (fan == Fan::average) return (fans.in + fans.out) / 2;
  return fan == Fan::in ? fans.in : fans.out;
}

Tensor draw_uniform(double low, double high, const Shape& shape, const RandomOptions& options) {
  return rand(shape, options) * (high - low) + low;
}

Tensor draw_normal(double deviation, const Shape& shape, const RandomOptions& options) {
  return randn(shape, options) * deviation;
}

// Draws from a uniform distribution with this standard deviation.
Tensor draw_uniform(double deviation, const Shape& shape, const RandomOptions& options) {
  double bound = std::sqrt(3.0) * deviation;
  return draw_uniform(-bound, bound, shape, options);
}

// 2 (Φ(x) − Φ(0)).
double twice_normal_probability(double x) { return std::erf(x / std::numbers::sqrt2); }

// The distance from which Φ is too close to 0 or 1 to be inverted.
constexpr double tail = 4;

// Draws from a normal distribution truncated to [low, high], 0 < low: proposals with density x exp(−x²/2), accepted
// with probability low / x.
// Source: Marsaglia, Generating a variable from the tail of the normal distribution (1964).
Tensor draw_tail(double low, double high, const Shape& shape, const RandomOptions& options) {
  double missing = std::expm1((low - high) * (low + high) / 2);
  auto draw = [&] { return low * sqrt(1 - log1p(rand(shape, options) * missing) * (2 / (low * low))); };
  auto is_refused = [&](const Tensor& x) { return rand(shape, options) * x > low; };
  Tensor drawn = draw(), refused = is_refused(drawn);
  while (any(refused).item<bool>()) {
    Tensor again = draw();
    drawn = where(refused, again, drawn);
    refused = mul(refused, is_refused(again));
  }
  return drawn;
}

// A random (rows, columns) matrix, rows ≥ columns, with orthonormal columns: q of a QR decomposition is uniformly
// distributed if its signs are chosen such that the diagonal of r is positive.
Tensor draw_orthonormal(std::int64_t rows, std::int64_t columns, const RandomOptions& options) {
  QR parts = qr(randn({rows, columns}, options));
  return parts.q * where(diag(parts.r) < 0, -1.0, 1.0);
}

// The elements (c, c mod inputs, middle of the window) of a weight (out, inputs, k…), which map a channel to itself.
Tensor same_channel(const Shape& shape, std::int64_t groups) {
  std::int64_t inputs = shape[1], outputs_of_group = shape[0] / groups;
  Tensor output = arange(shape[0]) % outputs_of_group;
  Tensor same = unsqueeze(output, 1) == arange(inputs);
  for (int axis = 2; axis < shape.rank(); ++axis)
    same = mul(unsqueeze(same, -1), arange(shape[axis]) == shape[axis] / 2);
  return same;
}

}  // namespace

Initialiser constant(double value) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return full(shape, value, {.dtype = options.dtype, .device = options.device});
  };
}

Initialiser uniform(double low, double high) {
  return [=](const Shape& shape, const RandomOptions& options) { return draw_uniform(low, high, shape, options); };
}

Initialiser normal(double mean, double deviation) {
  return
      [=](const Shape& shape, const RandomOptions& options) { return draw_normal(deviation, shape, options) + mean; };
}

Initialiser truncated_normal(double mean, double deviation, double low, double high, Location where) {
  if (!(low < high)) fail<Error>("truncated_normal", where, "low {} is not below high {}", low, high);
  // By the inverse of the distribution function, in f64: in f32 the tails would be coarse.
  return [=](const Shape& shape, const RandomOptions& options) {
    RandomOptions wide = options;
    wide.dtype = DType::f64;
    Tensor distance;
    if (low >= tail)
      distance = draw_tail(low, high, shape, wide);
    else if (high <= -tail)
      distance = -draw_tail(-high, -low, shape, wide);
    else
      distance = erfinv(draw_uniform(twice_normal_probability(low), twice_normal_probability(high), shape, wide)) *
                 std::numbers::sqrt2;
    return to_if_needed(clamp(distance, low, high) * deviation + mean, options.dtype);
  };
}

double gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
    default: return 1;
  }
}

Initialiser xavier_uniform(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_uniform(gain / std::sqrt(fan_of("xavier_uniform", shape, Fan::average)), shape, options);
  };
}

Initialiser xavier_normal(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_normal(gain / std::sqrt(fan_of("xavier_normal", shape, Fan::average)), shape, options);
  };
}

Initialiser he_uniform(double gain, Fan fan) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_uniform(gain / std::sqrt(fan_of("he_uniform", shape, fan)), shape, options);
  };
}

Initialiser he_normal(double gain, Fan fan) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_normal(gain / std::sqrt(fan_of("he_normal", shape, fan)), shape, options);
  };
}

Initialiser orthogonal(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    fans_of("orthogonal", shape);
    if (shape.numel() == 0) return zeros(shape, {.dtype = options.dtype, .device = options.device});
    // Decompositions support f32 and f64 only.
    RandomOptions wide = options;
    if (options.dtype != DType::f64) wide.dtype = DType::f32;
    std::int64_t rows = shape[0], columns = shape.numel() / rows;
    Tensor matrix =
        rows < columns ? transpose(draw_orthonormal(columns, rows, wide)) : draw_orthonormal(rows, columns, wide);
    return reshape(to_if_needed(contiguous_if_needed(matrix) * gain, options.dtype), shape);
  };
}

Initialiser identity(double gain, std::int64_t groups) {
  return [=](const Shape& shape, const RandomOptions& options) {
    fans_of("identity", shape);
    if (groups < 1 || shape[0] % groups != 0 || (shape.rank() == 2 && groups > 1))
      fail<ShapeError>("identity", {}, "{} groups do not fit a parameter of shape {}", groups, to_string(shape));
    DeviceGuard there(options.device);
    return to_if_needed(same_channel(shape, groups), options.dtype) * gain;
  };
}

Initialiser sparse(double sparsity, double deviation, Location where) {
  if (!(sparsity >= 0 && sparsity <= 1))
    fail<Error>("sparse", where, "the sparsity {} does not lie in [0, 1]", sparsity);
  return [=](const Shape& shape, const RandomOptions& options) {
    if (shape.rank() != 2) fail<ShapeError>("sparse", {}, "a parameter of shape {} is not (in, out)", to_string(shape));
    Tensor drawn = draw_normal(deviation, shape, options);
    Tensor places = argsort(argsort(rand(shape, {.dtype = DType::f64, .generator = options.generator}), 0), 0);
    return drawn * to(places >= std::ceil(sparsity * static_cast<double>(shape[0])), options.dtype);
  };
}

}  // namespace reel::nn
