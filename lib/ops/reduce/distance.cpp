#include <reel/ops/distance.h>

#include <algorithm>
#include <cmath>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/norm.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/stop_gradient.h>

#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// Two operands of one floating dtype; names the caller while it lives.
struct Vectors {
  Vectors(const char* op, const Arg& given_a, const Arg& given_b) : where(given_a.location()), caller(where, op) {
    const AutocastArg first(Precision::full, given_a), second(Precision::full, given_b);
    const Tensor &x = tensor_of(op, first), &y = tensor_of(op, second);
    check_floating(op, x, where);
    check_floating(op, y, where);
    if (x.dtype() != y.dtype())
      fail<DTypeError>(op, where, "operands must have one dtype: a {}, b {}", describe(x), describe(y));
    check_same_device(op, x, y, where);
    dtype = x.dtype();
    a = widened(x);
    b = widened(y);
  }

  Location where;
  OpScope caller;
  DType dtype;
  // With halves converted to f32.
  Tensor a, b;
};

// The shape to which both broadcast. Throws: ShapeError.
Shape common_shape(const char* op, const Vectors& given) {
  Shape shape;
  if (!broadcast(given.a.shape(), given.b.shape(), shape))
    fail<ShapeError>(op, given.where, "shapes do not broadcast: a {}, b {}", to_string(given.a.shape()),
                     to_string(given.b.shape()));
  if (shape.empty()) fail<ShapeError>(op, given.where, "takes vectors (…, D), not single numbers");
  return shape;
}

}  // namespace

// cosine_similarity = a·b / (max(‖a‖, ε) max(‖b‖, ε))

Tensor cosine_similarity(const Arg& a, const Arg& b, CosineSimilarityOptions options) {
  const char* name = "cosine_similarity";
  Vectors given(name, a, b);
  if (!(options.epsilon >= 0)) fail<Error>(name, given.where, "epsilon is {}, not at least 0", options.epsilon);
  Shape shape = common_shape(name, given);
  Tensor x = expand_if_needed(given.a, shape), y = expand_if_needed(given.b, shape);
  int axis = check_axis(name, options.axis, x, given.where);
  // Divided first: the products of large numbers would overflow.
  auto unit = [&](const Tensor& v) { return v / maximum(norm(v, axis, {.keepdims = true}), options.epsilon); };
  return to_if_needed(sum(unit(x) * unit(y), axis), given.dtype);
}

// pairwise_distance = ‖a − b + ε‖_p

Tensor pairwise_distance(const Arg& a, const Arg& b, PairwiseDistanceOptions options) {
  const char* name = "pairwise_distance";
  Vectors given(name, a, b);
  if (std::isnan(options.p)) fail<Error>(name, given.where, "p is NaN");
  common_shape(name, given);
  Tensor difference = given.a - given.b + options.epsilon;
  return to_if_needed(norm(difference, -1, {.p = options.p, .keepdims = options.keepdims}), given.dtype);
}

// cdist = ‖a_i − b_j‖_p

namespace {

// √(‖a‖² + ‖b‖² − 2 a·b), with both moved to the mean of b, so that less is cancelled.
Tensor euclidean_by_products(const Tensor& a, const Tensor& b) {
  Tensor centre = stop_gradient(mean(b, -2, {.keepdims = true}));
  Tensor x = a - centre, y = b - centre;
  Tensor squares = sum(square(x), -1, {.keepdims = true}) + unsqueeze(sum(square(y), -1), -2);
  Tensor squared = squares - matmul(x, transpose(y)) * 2.0;
  // Neither the root nor its derivatives are computed at 0.
  Tensor positive = squared > 0.0;
  return where(positive, sqrt(where(positive, squared, 1.0)), 0.0);
}

}  // namespace

Tensor cdist(const Arg& a, const Arg& b, CdistOptions options) {
  const char* name = "cdist";
  Vectors given(name, a, b);
  const Tensor &x = given.a, &y = given.b;
  Location where = given.where;
  if (!(options.p >= 0)) fail<Error>(name, where, "p is {}, not at least 0", options.p);
  if (x.rank() < 2 || y.rank() < 2 || x.size(-1) != y.size(-1))
    fail<ShapeError>(name, where, "takes rows of one length, (…, P, D) and (…, R, D), not {} and {}",
                     to_string(x.shape()), to_string(y.shape()));
  Shape shape;
  if (!broadcast(Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2))),
                 Shape(std::span(y.shape().begin(), static_cast<std::size_t>(y.rank() - 2))), shape) ||
      std::max(x.rank(), y.rank()) == max_rank)
    fail<ShapeError>(name, where, "the axes in front of the rows do not broadcast, or are too many: a {}, b {}",
                     to_string(x.shape()), to_string(y.shape()));
  constexpr std::int64_t few = 25;
  std::int64_t length = x.size(-1), rows = std::max(x.size(-2), y.size(-2));
  // No elements have no largest one, but the distance is 0.
  if (length == 0) return to_if_needed(sum(unsqueeze(x, -2) - unsqueeze(y, -3), -1), given.dtype);
  if (length == 1 && options.p > 0) return to_if_needed(abs(x - transpose(y)), given.dtype);
  if (options.p == 2 && rows > few && y.size(-2) > 0) return to_if_needed(euclidean_by_products(x, y), given.dtype);
  return to_if_needed(norm(unsqueeze(x, -2) - unsqueeze(y, -3), -1, {.p = options.p}), given.dtype);
}

}  // namespace reel
