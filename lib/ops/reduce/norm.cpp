#include <reel/ops/norm.h>

#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <cmath>

#include "../../core/op_error.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/kernel_table.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../joining.h"
#include "../registry.h"
#include "attributes.h"
#include "reduction.h"

namespace reel {

using namespace detail;

namespace {

// dy/dx · d for the norm y of x.
Tensor norm_gradient(const Tensor& x, const Tensor& y, const Tensor& d, double p) {
  if (p == 0) return d * zeros_like(x);
  Tensor signs = sign(x);
  if (p == 1) return d * signs;
  Tensor zero = y == 0.0, divisor = where(zero, 1.0, y);
  // x is divided first: d / y overflows if y is tiny.
  if (p == 2) return x / divisor * where(zero, 0.0, d);
  if (std::isinf(p)) {
    Tensor reached = to(x * signs == y, x.dtype());
    return signs * reached * (d / sum_to_if_needed(reached, y.shape()));
  }
  // Powers of 0 are avoided, as they or their derivatives may be infinite.
  Tensor ratio = where(signs == 0.0, 1.0, x * signs / divisor);
  return where(zero, 0.0, d) * signs * pow(ratio, p - 1);
}

}  // namespace

// y = (Σ |x|^p)^(1/p);  dx = d sign(x) (|x| / y)^(p − 1), 0 where y = 0

constexpr OpInfo norm_op{
    .name = "norm",
    .forward =
        [](Call& call) {
          kernels(call.output().device).norm(call.output(), call.input(0), call.attributes<NormAttributes>().p);
        },
    .gradient =
        [](Gradient& g) {
          Tensor x = widened(g.saved_input(0)), y = widened(g.saved_output()), d = widened(g.output());
          g.accumulate(0, to_if_needed(norm_gradient(x, y, d, g.attributes<NormAttributes>().p), g.input_dtype(0)));
        },
    .saves_input_for = {inputs({0})},
    .saves_output_for = {inputs({0})},
    .precision = Precision::full,
    .joining = by_kept_axes,
};

template <int>
Tensor norm(const Arg& x, const Axes& axes, NormOptions options) {
  const char* name = norm_op.name;
  const Tensor& tensor = tensor_of(name, x);
  Location where = x.location();
  check_floating(name, tensor, where);
  AxisSet set = axis_set(name, tensor, axes, where);
  if (std::isnan(options.p)) fail<Error>(name, where, "p is NaN, for {}", describe(tensor));
  if (options.p < 0 || std::isinf(options.p))
    check_not_of_nothing(name, "largest or smallest magnitude", tensor, set, where);
  return reduce_to_kept(norm_op, tensor, set, tensor.dtype(), options.keepdims, where,
                        bytes_of(NormAttributes{options.p}));
}
template Tensor norm<0>(const Arg& x, const Axes& axes, NormOptions options);

OpList detail::norm_ops() {
  static constexpr const OpInfo* ops[] = {&norm_op};
  return ops;
}

}  // namespace reel
