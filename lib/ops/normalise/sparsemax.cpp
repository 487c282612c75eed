#include <reel/ops/softmax.h>

#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>
#include <reel/ops/sort.h>
#include <reel/ops/stop_gradient.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// True where x is above τ = max_k ((Σ of the k largest) − 1) / k, along the last axis.
Tensor support_of(const Tensor& x) {
  Tensor sums = cumsum(sort(x, -1, {.descending = true}).values, -1);
  Tensor counts = arange(1, x.size(-1) + 1, 1, {.dtype = x.dtype(), .device = x.device()});
  return x > max((sums - 1.0) / counts, {-1}, {.keepdims = true});
}

// The gradient is that of the last lines, because the support is piecewise constant.
Tensor sparsemax_last(const Tensor& x) {
  Tensor shifted = x - max(stop_gradient(x), {-1}, {.keepdims = true});
  Tensor support = support_of(stop_gradient(shifted)),
         size = sum(to_if_needed(support, x.dtype()), {-1}, {.keepdims = true});
  Tensor threshold = (sum(where(support, shifted, 0.0), {-1}, {.keepdims = true}) - 1.0) / size;
  // Rows with NaN have an empty support.
  return where(logical_or(support, size == 0.0), shifted - threshold, 0.0);
}

}  // namespace

Tensor sparsemax(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of("sparsemax", x);
  Location where = x.location();
  check_floating("sparsemax", tensor, where);
  if (tensor.rank() != 0) axis = check_axis("sparsemax", axis, tensor, where);
  OpScope caller(where, "sparsemax");
  if (tensor.rank() == 0) return reshape(sparsemax(reshape(tensor, {1})), {});
  if (tensor.numel() == 0) return copy(tensor);
  // The threshold is a sum: halves are computed in f32 and rounded once.
  Tensor wide = tensor.dtype() == DType::f64 ? tensor : to_if_needed(tensor, DType::f32);
  Tensor y = transpose(sparsemax_last(transpose(wide, axis, -1)), axis, -1);
  return to_if_needed(y, autocast_dtype(Precision::full, tensor.dtype()));
}

}  // namespace reel
