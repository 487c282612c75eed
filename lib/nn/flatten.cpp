#include <reel/nn/flatten.h>
#include <reel/ops/shape.h>

namespace reel::nn {

Tensor Flatten::operator()(const Arg& x) const {
  return call("Flatten", x, [&](const Tensor& x) { return flatten(x, options_.first, options_.last); });
}

}  // namespace reel::nn
