#include <reel/ops/loss.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/softmax.h>
#include <reel/tape.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../core/op_error.h"
#include "../tape/gradient.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

struct IgnoreAttributes {
  std::int64_t ignored;
};

}  // namespace

// Fused; runs when nothing records.

constexpr OpInfo cross_entropy_gradient_op{
    .name = "cross_entropy_gradient",
    .arity = 3,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .cross_entropy_gradient(call.output(), call.input(0), call.input(1), call.input(2),
                                      call.attributes<IgnoreAttributes>().ignored);
        },
};

// loss_n = −log softmax(x_n)[t_n], 0 where t_n is ignored;  dx_n = d_n (softmax(x_n) − one-hot(t_n)), 0 where ignored

constexpr OpInfo cross_entropy_op{
    .name = "cross_entropy",
    .arity = 2,
    .batching = Batching::stack,
    .forward =
        [](Call& call) {
          std::int64_t bad;
          if (!kernels(call.output().device)
                   .cross_entropy(call.output(), call.input(0), call.input(1),
                                  call.attributes<IgnoreAttributes>().ignored, bad))
            fail<IndexError>(call.op.name, call.where, "target {} is not a class of the logits {}", bad,
                             describe(*call.inputs[0]));
        },
    .gradient =
        [](Gradient& g) {
          const Tensor &d = g.output(), &x = g.saved_input(0), &targets = g.saved_input(1);
          if (!g.recording())
            return g.give(0, invoke(cross_entropy_gradient_op, {&d, &x, &targets}, {x.body(), x.dtype()}, g.where(),
                                    g.attribute_bytes()));
          Tensor classes = unsqueeze(to(targets, DType::i64), 1);
          Tensor ignored = classes == g.attributes<IgnoreAttributes>().ignored;
          Tensor scale = where(ignored, 0.0, unsqueeze(d, 1));
          // An ignored row may hold what no gradient survives.
          Tensor probabilities = softmax(where(ignored, 0.0, x));
          g.give(0, scatter_add(probabilities * scale, 1, where(ignored, 0, classes), -scale));
        },
    .saves_input_for = {inputs({0}), inputs({0})},
};

namespace {

// How many targets are not ignored.
double counted(const Tensor& targets, std::int64_t ignored) {
  NoRecord pause;
  return sum(to(targets, DType::i64) != ignored).item<double>();
}

}  // namespace

Tensor cross_entropy(const Arg& logits, const Arg& targets, CrossEntropyOptions options) {
  const char* name = cross_entropy_op.name;
  const Tensor &x = tensor_of(name, logits), &t = tensor_of(name, targets);
  Location where = logits.location();
  CallerScope caller(where);
  check_floating(name, x, where);
  if (t.dtype() != DType::i32 && t.dtype() != DType::i64)
    fail<DTypeError>(name, where, "targets are class numbers of i32 or i64, not {}; convert them with to(targets, i64)",
                     describe(t));
  check_same_device(name, x, t, where);
  // Classes are axis 1, or the only axis.
  int axis = x.rank() >= 2 ? 1 : 0;
  Shape examples;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) examples.push_back(x.body().dims[i]);
  if (x.rank() == 0 || t.shape() != examples)
    fail<ShapeError>(name, where, "logits {} want targets {}, not {}", to_string(x.shape()), to_string(examples),
                     to_string(t.shape()));

  Tensor rows = x, flat = t;
  if (x.rank() != 2) {
    std::int64_t classes = x.body().dims[axis];
    Shape order;
    for (int i = 0; i < x.rank(); ++i)
      if (i != axis) order.push_back(i);
    order.push_back(axis);
    rows = reshape(permute(x, order), {examples.numel(), classes});
    flat = reshape(t, {examples.numel()});
  }
  Tensor losses = invoke(cross_entropy_op, {&rows, &flat}, {flat.body(), x.dtype()}, where,
                         bytes_of(IgnoreAttributes{options.ignore_index}));
  switch (options.reduction) {
    case LossReduction::none: return x.rank() == 2 ? losses : reshape(losses, examples);
    case LossReduction::sum: return sum(losses);
    case LossReduction::mean: break;
  }
  // As in mean.
  Tensor total = sum(size_of(x.dtype()) == 2 ? to(losses, DType::f32) : losses);
  return to(total / counted(flat, options.ignore_index), x.dtype());
}

std::span<const RegisteredOp> detail::loss_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "cross_entropy", .info = &cross_entropy_op},
      {.name = "cross_entropy_gradient", .info = &cross_entropy_gradient_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
