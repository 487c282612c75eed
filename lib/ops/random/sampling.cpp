#include <reel/ops/random.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/softmax.h>
#include <reel/ops/stop_gradient.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/sampling.h"
#include "../if_needed.h"
#include "../registry.h"

namespace reel {

using namespace detail;

// gumbel_softmax: y = softmax((x + g) / t); hard: one-hot of its largest element, with the gradient of y

Tensor gumbel_softmax(const Arg& logits, GumbelSoftmaxOptions options) {
  constexpr const char* op = "gumbel_softmax";
  const Tensor& x = tensor_of(op, logits);
  Location where = logits.location();
  check_floating(op, x, where);
  int axis = check_axis(op, options.axis, x, where);
  if (!(options.temperature > 0)) fail<Error>(op, where, "the temperature is {}, not above 0", options.temperature);
  OpScope caller(where, op);
  // Halves are computed in f32 and rounded once.
  DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor noise = gumbel(x.shape(), {.dtype = wide, .device = x.device(), .generator = options.generator}, where);
  Tensor y = to_if_needed(softmax((to_if_needed(x, wide) + noise) / options.temperature, axis), x.dtype());
  if (!options.hard || x.numel() == 0) return y;
  Tensor chosen =
      transpose(one_hot(argmax(transpose(stop_gradient(y), axis, -1), -1), x.size(axis), x.dtype()), axis, -1);
  // The value is that of `chosen`, because y − y is exactly 0; the gradient is that of y.
  return y - stop_gradient(y) + chosen;
}

// multinomial: y_i = class c with probability p_c / Σ p

namespace {

struct MultinomialAttributes {
  std::uint64_t seed, call;
  std::int64_t replacement;
};

constexpr OpInfo multinomial_op{
    .name = "multinomial",
    .forward =
        [](Call& call) {
          const auto& draw = call.attributes<MultinomialAttributes>();
          BadRow bad;
          if (kernels(call.output().device)
                  .sampling->multinomial(call.output(), call.input(0), draw.replacement != 0, {draw.seed, draw.call},
                                         bad))
            return;
          if (bad.is_probability)
            fail<Error>("multinomial", call.where,
                        "row {} has the probability {}, which is not a finite number from 0 on", bad.row,
                        bad.probability);
          fail<Error>("multinomial", call.where, "row {} has {} classes above 0, too few to draw {}{}", bad.row,
                      bad.classes, call.output().dims[1], draw.replacement ? "" : " without replacement");
        },
};

}  // namespace

Tensor multinomial(const Arg& probabilities, std::int64_t count, MultinomialOptions options) {
  constexpr const char* op = "multinomial";
  const Tensor& p = tensor_of(op, probabilities);
  Location where = probabilities.location();
  check_floating(op, p, where);
  if (p.rank() != 1 && p.rank() != 2)
    fail<ShapeError>(op, where, "takes probabilities (C) or (N, C), not {}", describe(p));
  if (count < 0) fail<ShapeError>(op, where, "cannot draw {} classes", count);
  OpScope caller(where, op);
  Tensor rows = contiguous_if_needed(stop_gradient(p));
  if (p.rank() == 1) rows = reshape(rows, {1, p.size(0)});
  Generator& source = options.generator ? *options.generator : default_generator();
  MultinomialAttributes attributes{source.seed(), source.next_call(), options.replacement};
  Tensor drawn =
      invoke(multinomial_op, {&rows}, {{rows.size(0), count}, DType::i64, p.device()}, where, bytes_of(attributes));
  return p.rank() == 1 ? reshape(drawn, {count}) : drawn;
}

OpList detail::sampling_ops() {
  static constexpr const OpInfo* ops[] = {&multinomial_op};
  return ops;
}

}  // namespace reel
