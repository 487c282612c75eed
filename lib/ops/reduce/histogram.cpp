#include <reel/ops/histogram.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <cmath>

#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

Tensor bincount(const Arg& x, BincountOptions options) {
  const char* name = "bincount";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  DType dtype = tensor.dtype();
  if (is_floating(dtype) || dtype == DType::boolean)
    fail<DTypeError>(name, where, "takes integers, not {}; convert it with to(x, i64)", describe(tensor));
  if (tensor.rank() != 1) fail<ShapeError>(name, where, "takes a vector, not {}", describe(tensor));
  if (options.minimum_length < 0)
    fail<ShapeError>(name, where, "the least number of bins is {}, which is negative", options.minimum_length);
  const Tensor& weights = options.weights;
  if (weights.defined()) {
    if (weights.shape() != tensor.shape())
      fail<ShapeError>(name, where, "the weights {} do not have the shape of x {}", to_string(weights.shape()),
                       to_string(tensor.shape()));
    check_same_device(name, tensor, weights, where);
  }
  std::int64_t length = options.minimum_length;
  if (tensor.numel() > 0) {
    auto least = min(tensor).item<std::int64_t>(), most = max(tensor).item<std::int64_t>();
    if (least < 0) fail<IndexError>(name, where, "{} is negative and has no bin, in {}", least, describe(tensor));
    if (most >= most_elements)
      fail<IndexError>(name, where, "{} wants more bins than a tensor can have, in {}", most, describe(tensor));
    length = std::max(length, most + 1);
  }
  Tensor bins = size_of(dtype) < 4 ? to(tensor, DType::i64) : tensor;
  if (!weights.defined())
    return segment_sum(expand(ones({}, {.dtype = DType::i64, .device = tensor.device()}), tensor.shape()), bins,
                       length);
  return segment_sum(weights.dtype() == DType::boolean ? to(weights, DType::i64) : weights, bins, length);
}

Tensor histc(const Arg& x, HistcOptions options) {
  const char* name = "histc";
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  OpScope caller(where, name);
  NoRecord pause;  // counts have no gradient
  check_floating(name, tensor, where);
  if (options.bins < 1) fail<ShapeError>(name, where, "there cannot be {} bins", options.bins);
  double low = options.low, high = options.high;
  if (low == high && tensor.numel() > 0) {
    low = min(tensor).item();
    high = max(tensor).item();
  }
  if (!(low <= high) || !std::isfinite(high - low))
    fail<Error>(name, where, "the bins from {} to {} are no finite range, for {}", low, high, describe(tensor));
  if (low == high) {
    low -= 1;
    high += 1;
  }
  Tensor wide = to_if_needed(reshape(tensor, {-1}), DType::f64);
  Tensor counted = logical_and(wide >= low, wide <= high);
  Tensor position = reel::where(counted, (wide - low) / (high - low) * static_cast<double>(options.bins), 0.0);
  Tensor bins = clamp(to(position, DType::i64), 0, options.bins - 1);
  return to(segment_sum(to(counted, DType::i64), bins, options.bins), tensor.dtype());
}

}  // namespace reel
