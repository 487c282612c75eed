#include <reel/ops/scan.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/index.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"

namespace reel {

using namespace detail;

namespace {

// a where the later element is at least as good, or NaN, else b.
Tensor chosen(const Tensor& keeps, const Tensor& all, const Tensor& later, const Tensor& earlier, int axis,
              std::int64_t step) {
  return concat({slice(all, axis, 0, step), where(keeps, later, earlier)}, axis);
}

// The index of the best element up to each one. Ranges that end there double in length with every step; a number is
// never as good as an earlier NaN.
Tensor best_indices(const Tensor& x, int axis, Tensor (*as_good)(const Arg& a, const Arg& b)) {
  std::int64_t size = x.body().dims[axis];
  Shape beside;
  for (int i = 0; i < x.rank(); ++i) beside.push_back(i == axis ? size : 1);
  Tensor order = arange(size, {.dtype = DType::i64, .device = x.device()});
  Tensor best = x, indices = copy(expand(reshape(order, beside), x.shape()));
  for (std::int64_t step = 1; step < size; step *= 2) {
    std::int64_t rest = size - step;
    Tensor later = slice(best, axis, step), earlier = slice(best, axis, 0, rest);
    Tensor keeps = logical_or(isnan(later), as_good(later, earlier));
    indices = chosen(keeps, indices, slice(indices, axis, step), slice(indices, axis, 0, rest), axis, step);
    best = chosen(keeps, best, later, earlier, axis, step);
  }
  return indices;
}

ValuesAndIndices cumulative(const char* name, const Arg& x, int axis, Tensor (*as_good)(const Arg& a, const Arg& b)) {
  const Tensor& tensor = tensor_of(name, x);
  axis = check_axis(name, axis, tensor, x.location());
  OpScope caller(x.location(), name);
  Tensor indices;
  {
    NoRecord pause;
    indices = best_indices(tensor, axis, as_good);
  }
  return {gather(tensor, axis, indices), indices};
}

}  // namespace

ValuesAndIndices cummax(const Arg& x, int axis) { return cumulative("cummax", x, axis, greater_equal); }
ValuesAndIndices cummin(const Arg& x, int axis) { return cumulative("cummin", x, axis, less_equal); }

}  // namespace reel
