#include <reel/nn/parametrised.h>

#include <reel/no_record.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/matmul.h>
#include <reel/ops/norm.h>
#include <reel/ops/random.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"

namespace reel {

using namespace detail;

namespace {

constexpr const char* spectral_norm_name = "SpectralNorm";

// x / ‖x‖, of a vector
Tensor unit(const Tensor& x, double epsilon) { return x / maximum(norm(x), epsilon); }

}  // namespace

Shape detail::axes_but(const Tensor& x, std::int64_t axis) {
  Shape axes;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) axes.push_back(i);
  return axes;
}

std::int64_t detail::output_axis(const char* name, const Tensor& weight, std::optional<std::int64_t> given,
                                 Location where) {
  return check_axis(name, given.value_or(weight.rank() == 2 ? -1 : 0), weight, where);
}

// A norm over no axes would be one over all.
Tensor detail::norm_but(const Tensor& v, std::int64_t axis) {
  return v.rank() == 1 ? abs(v) : norm(v, axes_but(v, axis), {.keepdims = true});
}

void detail::check_spectral_norm(const Tensor& weight, int iterations, Location where) {
  if (weight.rank() < 2 || weight.numel() == 0)
    fail<ShapeError>(spectral_norm_name, where, "the weight {} is no matrix of outputs and inputs",
                     to_string(weight.shape()));
  if (iterations < 1) fail<Error>(spectral_norm_name, where, "power_iterations {} must be at least 1", iterations);
}

Tensor detail::unit_vector(std::int64_t size, const Tensor& x, Generator* generator) {
  return unit(randn({size}, {.dtype = x.dtype(), .device = x.device(), .generator = generator}), 1e-12);
}

Tensor detail::divided_by_spectral_norm(const Tensor& weight, std::int64_t axis, const Tensor& u, const Tensor& v,
                                        int iterations, double epsilon) {
  Shape order{axis};
  for (std::int64_t other : axes_but(weight, axis)) order.push_back(other);
  Tensor matrix = reshape(permute(weight, order), {weight.size(axis), -1});
  // The tape must keep copies: the next call in training overwrites u and v.
  Tensor left, right;
  {
    NoRecord pause;
    left = copy(u);
    right = copy(v);
    for (int i = 0; i < iterations; ++i) {
      left = unit(matmul(matrix, right), epsilon);
      right = unit(matmul(left, matrix), epsilon);
    }
    if (iterations > 0) {
      copy_(u, left);
      copy_(v, right);
    }
  }
  return weight / matmul(left, matmul(matrix, right));
}

void detail::check_parametrisable(const nn::Module& layer, const Tensor& weight, Location where) {
  check_free(layer, where);
  if (!weight.defined())
    fail<Error>("Parametrised", where,
                "the {} has no weight yet; give it its input size, or call it once before it is wrapped",
                layer.type_name());
}

void detail::check_computed(const nn::Module& layer, const Tensor& computed, const Shape& shape) {
  if (!computed.defined())
    fail<Error>("Parametrised", {}, "effective_weight gave an undefined tensor for the {}", layer.type_name());
  if (computed.shape() != shape)
    fail<ShapeError>("Parametrised", {}, "effective_weight gave {} for the {}, whose weight is of shape {}",
                     describe(computed), layer.type_name(), to_string(shape));
}

}  // namespace reel
