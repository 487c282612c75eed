#include <reel/ops/activation.h>

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// The floating operand of an op that is composed of others, which names the caller while it lives.
struct Activated {
  Activated(const char* op, const Arg& given)
      : where(given.location()), caller(where, op), tensor(tensor_of(op, given)), dtype(tensor.dtype()) {
    check_floating(op, tensor, where);
  }

  Location where;
  OpScope caller;
  const Tensor& tensor;
  DType dtype;
};

double checked_lambda(const char* op, double lambda, Location where) {
  if (!(lambda >= 0)) fail<Error>(op, where, "lambda is {}, not at least 0", lambda);
  return lambda;
}

}  // namespace

// hardsigmoid: y = min(max(x + 3, 0), 6) / 6

Tensor hardsigmoid(const Arg& x) {
  Activated given("hardsigmoid", x);
  return to_if_needed(hardtanh(widened(given.tensor) + 3.0, {.low = 0, .high = 6}) / 6.0, given.dtype);
}

// logsigmoid: y = −log(1 + e^−x)

Tensor logsigmoid(const Arg& x) {
  Activated given("logsigmoid", x);
  return -softplus(-given.tensor, {.threshold = std::numeric_limits<double>::infinity()});
}

// celu: y = x where x > 0, else α (e^(x / α) − 1)

Tensor celu(const Arg& x, CeluOptions options) {
  Activated given("celu", x);
  if (options.alpha == 0) fail<Error>("celu", given.where, "alpha is 0; relu is the limit");
  Tensor wide = widened(given.tensor), positive = wide > 0.0;
  // The exponential must be finite where it is masked, too.
  Tensor below = expm1(where(positive, 0.0, wide) / options.alpha) * options.alpha;
  return to_if_needed(where(positive, wide, below), given.dtype);
}

// softshrink: y = x − min(max(x, −λ), λ)

Tensor softshrink(const Arg& x, ShrinkOptions options) {
  Activated given("softshrink", x);
  double lambda = checked_lambda("softshrink", options.lambda, given.where);
  Tensor wide = widened(given.tensor);
  return to_if_needed(wide - clamp(wide, -lambda, lambda), given.dtype);
}

// hardshrink: y = 0 where |x| ≤ λ, else x

Tensor hardshrink(const Arg& x, ShrinkOptions options) {
  Activated given("hardshrink", x);
  double lambda = checked_lambda("hardshrink", options.lambda, given.where);
  return where(abs(given.tensor) <= lambda, 0.0, given.tensor);
}

// prelu: y = x where x > 0, else w x

Tensor prelu(const Arg& given_x, const Arg& given_weight) {
  const char* name = "prelu";
  const AutocastArg x(Precision::low, given_x), weight(Precision::low, given_weight);
  const Tensor& slopes = tensor_of(name, weight);
  Activated given(name, x);
  const Tensor& tensor = given.tensor;
  if (slopes.dtype() != given.dtype)
    fail<DTypeError>(name, given.where, "the weight {} does not have the dtype of x {}; convert it with to(…, {})",
                     describe(slopes), describe(tensor), name_of(given.dtype));
  check_same_device(name, tensor, slopes, given.where);
  Shape shape;
  if (slopes.rank() > 1 || slopes.numel() != 1) {
    if (slopes.rank() != 1 || tensor.rank() < 2 || tensor.size(1) != slopes.numel())
      fail<ShapeError>(name, given.where,
                       "the weight {} is neither one number nor one for each channel on axis 1 of x {}",
                       to_string(slopes.shape()), to_string(tensor.shape()));
    shape.push_back(slopes.numel());
    for (int axis = 2; axis < tensor.rank(); ++axis) shape.push_back(1);
  }
  // An infinite element that the slope does not apply to would make the slope's gradient NaN.
  Tensor positive = tensor > 0.0;
  return where(positive, tensor, reshape(slopes, shape) * where(positive, 0.0, tensor));
}

}  // namespace reel
