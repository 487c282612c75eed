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

}  // namespace

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
