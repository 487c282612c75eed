#include <reel/nn/linear.h>

#include <cmath>

#include "../core/op_error.h"
#include "affine.h"

namespace reel::nn {

using namespace detail;

Linear::Linear(std::int64_t in, std::int64_t out, LinearOptions options, Location where) {
  initialise(in, out, options, where);
}

Linear::Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out, LinearOptions options,
               Location where)
    : Module(parent, name, where) {
  initialise(in, out, options, where);
}

void Linear::initialise(std::int64_t in, std::int64_t out, const LinearOptions& options, Location where) {
  if (in <= 0 || out <= 0) fail<ShapeError>("Linear", where, "sizes must be positive, not in {}, out {}", in, out);
  double bound = 1 / std::sqrt(static_cast<double>(in));
  RandomOptions draw{.dtype = options.dtype, .generator = options.generator};
  weight = parameter("weight", {in, out}, uniform(-bound, bound), draw, where);
  if (options.bias) bias = parameter("bias", {out}, uniform(-bound, bound), draw, where);
}

Tensor Linear::operator()(const Arg& x) const {
  const Tensor& input = tensor_of("Linear", x);
  CallerScope caller(x.location());
  std::int64_t in = weight.size(0);
  if (input.rank() == 0 || input.size(-1) != in)
    fail<ShapeError>("Linear", x.location(), "x {} does not end in an axis of size {}, as the weight {} needs",
                     to_string(input.shape()), in, to_string(weight.shape()));
  return affine(input, weight, bias);
}

}  // namespace reel::nn
