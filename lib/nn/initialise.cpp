#include <reel/nn/initialise.h>

#include <cmath>

#include <reel/ops/elementwise.h>

#include "../core/op_error.h"

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

Tensor draw_uniform(double low, double high, const Shape& shape, const RandomOptions& options) {
  return rand(shape, options) * (high - low) + low;
}

Tensor draw_normal(double deviation, const Shape& shape, const RandomOptions& options) {
  return randn(shape, options) * deviation;
}

// The variance that keeps a layer's outputs and gradients as large as its inputs, on average over both directions.
double xavier_variance(const char* name, const Shape& shape) {
  Fans fans = fans_of(name, shape);
  return 2 / (fans.in + fans.out);
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

Initialiser xavier_uniform(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    double bound = gain * std::sqrt(3 * xavier_variance("xavier_uniform", shape));
    return draw_uniform(-bound, bound, shape, options);
  };
}

Initialiser xavier_normal(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_normal(gain * std::sqrt(xavier_variance("xavier_normal", shape)), shape, options);
  };
}

Initialiser he_uniform(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    double bound = gain * std::sqrt(3 / fans_of("he_uniform", shape).in);
    return draw_uniform(-bound, bound, shape, options);
  };
}

Initialiser he_normal(double gain) {
  return [=](const Shape& shape, const RandomOptions& options) {
    return draw_normal(gain / std::sqrt(fans_of("he_normal", shape).in), shape, options);
  };
}

}  // namespace reel::nn
