#include <reel/ops/activation.h>

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
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

}  // namespace reel
