#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../if_needed.h"
#include "../registry.h"
#include "index_checks.h"

namespace reel {

using namespace detail;

void detail::check_mask(const char* op, const Tensor& x, const Tensor& mask, Location where) {
  if (mask.dtype() != DType::boolean)
    fail<DTypeError>(op, where, "the mask is bool, not {}; compare it with 0", describe(mask));
  check_same_device(op, x, mask, where);
}

// nonzero: the indices of elements that are not 0; no gradient

constexpr OpInfo nonzero_op{
    .name = "nonzero",
    .forward = [](Call& call) { kernels(call.output().device).nonzero(call.output(), call.input(0)); },
};

Tensor nonzero(const Arg& x) {
  const Tensor& tensor = tensor_of("nonzero", x);
  wait_for(tensor, x.location());
  std::int64_t count = kernels(tensor.device()).nonzero_count(tensor.body());
  return invoke(nonzero_op, {&tensor}, {{count, tensor.rank()}, DType::i64, tensor.device()}, x.location());
}

// masked_fill = value where the mask is true, else x

Tensor masked_fill(const Arg& x, const Arg& mask, const Arg& value) {
  return detail::masked_fill("masked_fill", x, mask, value);
}

Tensor detail::masked_fill(const char* name, const Arg& x, const Arg& mask, const Arg& value) {
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, mask);
  Location where = x.location();
  OpScope caller(where, name);
  check_mask(name, to, at, where);
  Shape shape;
  if (!broadcast(to.shape(), at.shape(), shape) || shape != to.shape())
    fail<ShapeError>(name, where, "the mask {} does not broadcast to x {}", to_string(at.shape()),
                     to_string(to.shape()));
  Tensor number = value_for(name, to, value, where);
  if (number.rank() != 0) fail<ShapeError>(name, where, "the value {} is not a single number", describe(number));
  return reel::where(at, number, to);
}

// masked_select = the elements of x, flattened, for which the mask is true

Tensor masked_select(const Arg& x, const Arg& mask) {
  const char* name = "masked_select";
  const Tensor &from = tensor_of(name, x), &at = tensor_of(name, mask);
  Location where = x.location();
  OpScope caller(where, name);
  check_mask(name, from, at, where);
  Shape shape;
  if (!broadcast(from.shape(), at.shape(), shape))
    fail<ShapeError>(name, where, "shapes do not broadcast: x {}, mask {}", to_string(from.shape()),
                     to_string(at.shape()));
  Tensor places = nonzero(reshape(expand_if_needed(at, shape), {-1}));
  return take(reshape(expand_if_needed(from, shape), {-1}), reshape(places, {-1}), 0);
}

// masked_scatter: y = s[k] where the mask is true for the k-th time, else x

Tensor masked_scatter(const Arg& x, const Arg& mask, const Arg& source) {
  const char* name = "masked_scatter";
  const Tensor &to = tensor_of(name, x), &at = tensor_of(name, mask), &from = tensor_of(name, source);
  Location where = x.location();
  OpScope caller(where, name);
  check_mask(name, to, at, where);
  check_same_device(name, to, from, where);
  Shape shape;
  if (!broadcast(to.shape(), at.shape(), shape) || shape != to.shape())
    fail<ShapeError>(name, where, "the mask {} does not broadcast to x {}", to_string(at.shape()),
                     to_string(to.shape()));
  if (from.dtype() != to.dtype())
    fail<DTypeError>(name, where, "the source {} does not have x's dtype {}", describe(from), name_of(to.dtype()));
  Tensor whole = expand_if_needed(at, shape);
  auto count = value_to_check<std::int64_t>(count_nonzero(whole));
  if (count > from.numel())
    fail<ShapeError>(name, where, "the source {} has fewer elements than the {} that the mask {} selects of x {}",
                     describe(from), count, to_string(at.shape()), describe(to));
  if (from.numel() == 0) return copy(to);
  // Where the mask is false, an element that exists is read and dropped.
  Tensor order = reshape(clamp(cumsum(whole) - 1, 0), shape);
  return reel::where(whole, take(from, order), to);
}

OpList detail::mask_ops() {
  static constexpr const OpInfo* ops[] = {&nonzero_op};
  return ops;
}

}  // namespace reel
