#include <reel/nn/linear.h>

#include <cmath>

#include "../core/op_error.h"
#include "affine.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* linear_name = "Linear";

// The initialiser of both the weight and the bias, unless one is given.
Initialiser first_values(const Initialiser& given, std::int64_t in, std::int64_t out, Location where) {
  if (in <= 0 || out <= 0) fail<ShapeError>(linear_name, where, "sizes must be positive, not in {}, out {}", in, out);
  if (given) return given;
  double bound = 1 / std::sqrt(static_cast<double>(in));
  return uniform(-bound, bound);
}

RandomOptions draw(const LinearOptions& options) { return {.dtype = options.dtype, .generator = options.generator}; }

}  // namespace

Linear::Linear(std::int64_t in, std::int64_t out, LinearOptions options, Location where)
    : weight(*this, "weight", {in, out}, first_values(options.initialiser, in, out, where), draw(options), where),
      bias(options.bias ? Parameter(*this, "bias", {out}, first_values(options.bias_initialiser, in, out, where),
                                    draw(options), where)
                        : Parameter(*this, "bias", where)),
      row_gradient_(options.row_gradient) {}

Tensor Linear::operator()(const Arg& x) const {
  return call(linear_name, x, [&](const Tensor& x) {
    std::int64_t in = weight.size(0);
    if (x.rank() == 0 || x.size(-1) != in)
      fail<ShapeError>(linear_name, {}, "x {} does not end in an axis of size {}, as the weight {} needs",
                       to_string(x.shape()), in, to_string(weight.shape()));
    return affine(x, weight, bias);
  });
}

Tensor Linear::operator()(const CSRMatrix& x, Location where) const {
  if (!x.defined()) fail<Error>(linear_name, where, "the sparse matrix is undefined: it was never given a value");
  if (x.shape()[1] != weight.size(0))
    fail<ShapeError>(linear_name, where, "the sparse x {} does not have {} columns, as the weight {} needs",
                     to_string(x.shape()), weight.size(0), to_string(weight.shape()));
  return call(linear_name, Arg(x.values(), where), [&](const Tensor& values) {
    Tensor y = matmul(x.with_values(values), weight, {.row_gradient = row_gradient_});
    return bias.defined() ? y + bias : y;
  });
}

}  // namespace reel::nn
