#include <reel/ops/normalise.h>

#include "../../core/op_error.h"
#include "../registry.h"
#include "row_norm.h"

namespace reel {

using namespace detail;

constexpr OpInfo layer_norm_op = row_norm_op("layer_norm");
constexpr OpInfo rms_norm_op = row_norm_op("rms_norm");

namespace {

Tensor over_last_axes(const OpInfo& op, const Arg& x, const Shape& normalised, const Arg* weight, const Arg* bias,
                      NormaliseOptions options, bool centred) {
  const Tensor& tensor = tensor_of(op.name, x);
  Location where = x.location();
  OpScope caller(where, op.name);
  check_floating(op.name, tensor, where);
  check_epsilon(op.name, options.epsilon, where);
  int leading = tensor.rank() - normalised.rank();
  bool fits = normalised.rank() > 0 && leading >= 0;
  for (int i = 0; fits && i < normalised.rank(); ++i) fits = tensor.body().dims[leading + i] == normalised[i];
  if (!fits)
    fail<ShapeError>(op.name, where, "x {} does not end in the sizes {} of the axes to normalise", describe(tensor),
                     to_string(normalised));
  Tensor w = norm_parameter(op.name, "weight", weight, x, normalised, 1);
  Tensor b;
  if (centred) b = norm_parameter(op.name, "bias", bias, x, normalised, 0);
  std::int64_t rows = 1;
  for (int i = 0; i < leading; ++i) rows *= tensor.body().dims[i];
  return run_row_norm(op, x, rows, w, centred ? &b : nullptr, {options.epsilon, normalised.numel(), centred});
}

}  // namespace

Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, const Arg& bias, NormaliseOptions options) {
  return over_last_axes(layer_norm_op, x, normalised, &weight, &bias, options, true);
}

Tensor layer_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options) {
  return over_last_axes(layer_norm_op, x, normalised, &weight, nullptr, options, true);
}

Tensor layer_norm(const Arg& x, const Shape& normalised, NormaliseOptions options) {
  return over_last_axes(layer_norm_op, x, normalised, nullptr, nullptr, options, true);
}

Tensor rms_norm(const Arg& x, const Shape& normalised, const Arg& weight, NormaliseOptions options) {
  return over_last_axes(rms_norm_op, x, normalised, &weight, nullptr, options, false);
}

Tensor rms_norm(const Arg& x, const Shape& normalised, NormaliseOptions options) {
  return over_last_axes(rms_norm_op, x, normalised, nullptr, nullptr, options, false);
}

OpList detail::layer_norm_ops() {
  static constexpr const OpInfo* ops[] = {&layer_norm_op, &rms_norm_op, &row_norm_gradient_op};
  return ops;
}

}  // namespace reel
