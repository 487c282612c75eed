#include <reel/ops/random.h>

#include <cmath>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

namespace {

// A mask that is true with the given probability, from the random numbers by which `dropout` drops elements.
Tensor dropped(const char* op, double probability, const Shape& shape, const Tensor& like, Generator* generator,
               Location where) {
  if (!(probability >= 0 && probability <= 1))
    fail<Error>(op, where, "the probability {} lies outside [0, 1]", probability);
  return bernoulli(probability, shape, {.dtype = DType::boolean, .device = like.device(), .generator = generator},
                   where);
}

}  // namespace

// variational_dropout: y = m x / (1 − p), with one m for all steps

Tensor variational_dropout(const Arg& x, VariationalDropoutOptions options) {
  constexpr const char* op = "variational_dropout";
  const Tensor& tensor = tensor_of(op, x);
  Location call_site = x.location();
  check_floating(op, tensor, call_site);
  Shape shape = tensor.shape();
  shape[check_axis(op, options.axis, tensor, call_site)] = 1;
  OpScope caller(call_site, op);
  Tensor mask = dropped(op, options.probability, shape, tensor, options.generator, call_site);
  double scale = options.probability < 1 ? 1 / (1 - options.probability) : 0;
  return to_if_needed(where(mask, 0.0, widened(tensor) * scale), tensor.dtype());
}

// dropout2d: y = m x / (1 − p), with one m for all of a channel

Tensor dropout2d(const Arg& x, DropoutOptions options) {
  constexpr const char* op = "dropout2d";
  const Tensor& tensor = tensor_of(op, x);
  Location call_site = x.location();
  check_floating(op, tensor, call_site);
  if (tensor.rank() != 3 && tensor.rank() != 4)
    fail<ShapeError>(op, call_site, "takes (N, C, H, W) or (C, H, W), not {}", describe(tensor));
  Shape shape = tensor.shape();
  shape[-1] = shape[-2] = 1;
  OpScope caller(call_site, op);
  Tensor mask = dropped(op, options.probability, shape, tensor, options.generator, call_site);
  double scale = options.probability < 1 ? 1 / (1 - options.probability) : 0;
  return to_if_needed(where(mask, 0.0, widened(tensor) * scale), tensor.dtype());
}

// alpha_dropout: y = a (m x + (1 − m) α') + b

Tensor alpha_dropout(const Arg& x, DropoutOptions options) {
  constexpr double limit = -1.7580993408473766;
  const Tensor& tensor = tensor_of("alpha_dropout", x);
  Location call_site = x.location();
  check_floating("alpha_dropout", tensor, call_site);
  OpScope caller(call_site, "alpha_dropout");
  Tensor mask = dropped("alpha_dropout", options.probability, tensor.shape(), tensor, options.generator, call_site);
  double p = options.probability, q = 1 - p;
  double scale = p < 1 ? 1 / std::sqrt(q + limit * limit * q * p) : 0, shift = -scale * p * limit;
  return to_if_needed(where(mask, scale * limit + shift, widened(tensor) * scale + shift), tensor.dtype());
}

}  // namespace reel
