#include <reel/ops/reduce.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

template <Reduction op>
void reduce_forward(Call& call) {
  kernels(call.output().device).reduce[static_cast<int>(op)](call.output(), call.input(0));
}

// A set of axes, as bits.
using AxisSet = unsigned;

AxisSet all_axes(const Tensor& x) { return (1u << x.rank()) - 1; }

AxisSet axis_set(const char* op, const Tensor& x, const Shape& axes, Location where) {
  AxisSet set = 0;
  for (std::int64_t axis : axes) {
    AxisSet bit = 1u << check_axis(op, axis, x, where);
    if (set & bit)
      fail<ShapeError>(op, where, "axis {} is named twice in {}, for {}", axis, to_string(axes), describe(x));
    set |= bit;
  }
  return set;
}

Shape kept_shape(const Tensor& x, AxisSet axes) {
  Shape shape = x.shape();
  for (int i = 0; i < shape.rank(); ++i)
    if (axes >> i & 1) shape[i] = 1;
  return shape;
}

// Takes the reduced axes out of a result that still has them.
Tensor finished(Tensor result, AxisSet axes, ReduceOptions options, Location where) {
  if (options.keepdims || axes == 0) return result;
  Shape shape;
  for (int i = 0; i < result.rank(); ++i)
    if (!(axes >> i & 1)) shape.push_back(result.body().dims[i]);
  return reshape(Arg(result, where), shape);
}

}  // namespace

// y = Σ x over the axes that y has with size 1;  dx = d, repeated along them

constexpr OpInfo sum_op{
    .name = "sum",
    .arity = 1,
    .batching = Batching::stack,
    .forward = reduce_forward<Reduction::sum>,
    .gradient = [](Gradient& g) { g.give(0, expand(g.output(), g.input_shape(0))); },
};

namespace {

Tensor sum_over(const Tensor& x, AxisSet axes, ReduceOptions options, Location where) {
  DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::i64;
  return finished(invoke(sum_op, {&x}, {kept_shape(x, axes), dtype, x.device()}, where), axes, options, where);
}

}  // namespace

Tensor sum(const Arg& x, ReduceOptions options) {
  const Tensor& tensor = tensor_of("sum", x);
  return sum_over(tensor, all_axes(tensor), options, x.location());
}

Tensor sum(const Arg& x, const Shape& axes, ReduceOptions options) {
  const Tensor& tensor = tensor_of("sum", x);
  return sum_over(tensor, axis_set("sum", tensor, axes, x.location()), options, x.location());
}

// mean = Σ x / n

namespace {

Tensor mean_over(const Tensor& x, AxisSet axes, ReduceOptions options, Location where) {
  check_floating("mean", x, where);
  CallerScope caller(where);
  double count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (axes >> i & 1) count *= static_cast<double>(x.body().dims[i]);
  // The sum of many halves may be beyond them where their mean is not.
  bool half = size_of(x.dtype()) == 2;
  Tensor total = sum_over(half ? to(x, DType::f32) : x, axes, options, where);
  return to(total / count, x.dtype());
}

}  // namespace

Tensor mean(const Arg& x, ReduceOptions options) {
  const Tensor& tensor = tensor_of("mean", x);
  return mean_over(tensor, all_axes(tensor), options, x.location());
}

Tensor mean(const Arg& x, const Shape& axes, ReduceOptions options) {
  const Tensor& tensor = tensor_of("mean", x);
  return mean_over(tensor, axis_set("mean", tensor, axes, x.location()), options, x.location());
}

// y = max x over the axes that y has with size 1;  dx = d / (how many are largest) where x is largest, else 0

constexpr OpInfo max_op{
    .name = "max",
    .arity = 1,
    .batching = Batching::stack,
    .forward = reduce_forward<Reduction::max>,
    .gradient =
        [](Gradient& g) {
          const Tensor& x = g.saved_input(0);
          Tensor largest = to(x == g.saved_output(), x.dtype());
          g.give(0, largest * (g.output() / sum_to(largest, g.output().shape())));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = inputs({0}),
};

namespace {

Tensor max_over(const Tensor& x, AxisSet axes, ReduceOptions options, Location where) {
  Shape shape = kept_shape(x, axes);
  if (x.numel() == 0 && shape.numel() != 0)
    fail<ShapeError>("max", where, "there is no largest element of nothing: {}", describe(x));
  return finished(invoke(max_op, {&x}, {shape, x.dtype(), x.device()}, where), axes, options, where);
}

}  // namespace

Tensor max(const Arg& x, ReduceOptions options) {
  const Tensor& tensor = tensor_of("max", x);
  return max_over(tensor, all_axes(tensor), options, x.location());
}

Tensor max(const Arg& x, const Shape& axes, ReduceOptions options) {
  const Tensor& tensor = tensor_of("max", x);
  return max_over(tensor, axis_set("max", tensor, axes, x.location()), options, x.location());
}

Tensor sum_to(const Arg& x, const Shape& shape) {
  const Tensor& tensor = tensor_of("sum_to", x);
  Location where = x.location();
  int extra = tensor.rank() - shape.rank();
  AxisSet axes = 0;
  bool fits = extra >= 0;
  for (int i = 0; fits && i < tensor.rank(); ++i) {
    std::int64_t size = tensor.body().dims[i];
    if (i < extra || (shape[i - extra] == 1 && size != 1))
      axes |= 1u << i;
    else
      fits = shape[i - extra] == size;
  }
  if (!fits) fail<ShapeError>("sum_to", where, "{} does not broadcast to {}", to_string(shape), describe(tensor));
  if (axes == 0) return tensor;
  return reshape(Arg(sum_over(tensor, axes, {.keepdims = true}, where), where), shape);
}

std::span<const RegisteredOp> detail::reduce_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "sum", .info = &sum_op},
      {.name = "mean"},
      {.name = "max", .info = &max_op},
      {.name = "sum_to"},
  };
  return ops;
}

}  // namespace reel
