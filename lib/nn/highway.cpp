#include <reel/nn/highway.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* highway_name = "Highway";

LinearOptions linear_options(const HighwayOptions& options) {
  return {.dtype = options.dtype, .generator = options.generator};
}

LinearOptions gate_options(const HighwayOptions& options) {
  LinearOptions result = linear_options(options);
  result.bias_initialiser = constant(options.gate_bias);
  return result;
}

}  // namespace

Highway::Highway(std::int64_t size, HighwayOptions options, Location where)
    : transform(*this, "transform", size, size, linear_options(options), where),
      gate(*this, "gate", size, size, gate_options(options), where),
      activation_(options.activation) {
  if (!activation_) fail<Error>(highway_name, where, "the activation is null");
}

Tensor Highway::operator()(const Arg& x) const {
  return call(highway_name, x, [&](const Tensor& x) { return lerp(x, activation_(transform(x)), sigmoid(gate(x))); });
}

}  // namespace reel::nn
