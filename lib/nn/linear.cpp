#include <reel/nn/linear.h>

#include <cmath>

#include <reel/no_record.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../record/origin.h"
#include "affine.h"
#include "weight_dtype.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* linear_name = "Linear";

// The initialiser of both the weight and the bias, unless one is given.
Initialiser first_values(const Initialiser& given, std::int64_t in, std::int64_t out, Location where) {
  if (in <= 0 || out <= 0)
    fail<ShapeError>(linear_name, where, "sizes must be positive, not in {}, out {}{}", in, out,
                     out > 0 ? "; in may be nn::infer_size" : "");
  if (given) return given;
  double bound = 1 / std::sqrt(static_cast<double>(in));
  return uniform(-bound, bound);
}

RandomOptions draw(const LinearOptions& options) { return {.dtype = options.dtype, .generator = options.generator}; }

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, LinearOptions options, Location where)
    : weight(in == infer_size ? Parameter(*this, "weight", where)
                              : Parameter(*this, "weight", {in, out}, first_values(options.initialiser, in, out, where),
                                          draw(options), where)),
      bias(options.bias && in != infer_size
               ? Parameter(*this, "bias", {out}, first_values(options.bias_initialiser, in, out, where), draw(options),
                           where)
               : Parameter(*this, "bias", where)),
      row_gradient_(options.row_gradient) {
  if (in != infer_size) return;
  first_values({}, 1, out, where);  // checks `out`
  deferred_ = std::make_shared<const Deferred>(Deferred{out, std::move(options), where});
}

void Linear::refuse_uninitialised() const {
  fail<Error>(linear_name, deferred_->where,
              "it has no parameters before its first call, which tells it its input size; call the model once before "
              "its parameters are listed, converted, saved or loaded");
}

void Linear::initialise(std::int64_t in, Device device, Location call) const {
  if (!deferred_) return;
  const Context& here = context();
  if (here.parent || here.scope_id >= first_isolated_scope || is_copy_for_call())
    fail<Error>(linear_name, call,
                "its first call, which makes its parameters, is within batch_map, checkpoint or functional_call; call "
                "the model once before");
  const auto& [out, options, where] = *deferred_;
  NoRecord pause;
  CallerScope caller(where);
  auto make = [&](const Parameter& parameter, const Shape& shape, const Initialiser& given) {
    RandomOptions drawn = draw(options);
    initialise_parameter(parameter, to_if_needed(first_values(given, in, out, where)(shape, drawn), device));
  };
  if (options.bias) make(bias, {out}, options.bias_initialiser);
  make(weight, {in, out}, options.initialiser);
  deferred_.reset();
}

Tensor Linear::operator()(const Arg& x) const {
  return call(linear_name, x, [&](const Tensor& x) {
    if (x.rank() > 0) initialise(x.size(-1), x.device(), {});
    std::int64_t in = weight.size(0);
    if (x.rank() == 0 || x.size(-1) != in)
      fail<ShapeError>(linear_name, {}, "x {} does not end in an axis of size {}, as the weight {} needs",
                       to_string(x.shape()), in, to_string(weight.shape()));
    check_weight_dtype(linear_name, x, weight);
    return affine(x, weight, bias);
  });
}

Tensor Linear::operator()(const CSRMatrix& x, Location where) const {
  if (!x.defined()) fail<Error>(linear_name, where, "the sparse matrix is undefined: it was never given a value");
  initialise(x.shape()[1], x.values().device(), where);
  if (x.shape()[1] != weight.size(0))
    fail<ShapeError>(linear_name, where, "the sparse x {} does not have {} columns, as the weight {} needs",
                     to_string(x.shape()), weight.size(0), to_string(weight.shape()));
  check_weight_dtype(linear_name, x.values(), weight, where);
  return call(linear_name, Arg(x.values(), where), [&](const Tensor& values) {
    Tensor y = matmul(x.with_values(values), weight, {.row_gradient = row_gradient_});
    return bias.defined() ? y + bias : y;
  });
}

}  // namespace reel::nn
