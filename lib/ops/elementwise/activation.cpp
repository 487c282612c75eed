#include <reel/ops/activation.h>

#include <limits>

#include <reel/ops/comparison.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/context.h"
#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../kernels/activation.h"
#include "../registry.h"
#include "attributes.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

namespace {

template <class F>
void forward(Call& call) {
  const auto& [first, second, third] = call.attributes<ActivationAttributes>();
  kernels(call.output().device)
      .activation->forward[activation_place<F>](call.output(), call.input(0), {first, second, third});
}

// Fused gradients have no gradient of their own: they run only when nothing records.
template <class F>
constexpr OpInfo fused_gradient(const char* name) {
  return {.name = name,
          .forward =
              [](Call& call) {
                const auto& [first, second, third] = call.attributes<ActivationAttributes>();
                kernels(call.output().device)
                    .activation->gradient[activation_place<F>](call.output(), call.input(0), call.input(1),
                                                               {first, second, third});
              },
          .joining = by_elements,
          .internal = true};
}

using Numbers = const ActivationAttributes&;

/// `composed` computes the gradient with differentiable ops.
template <const OpInfo& fused, Tensor (*composed)(const Tensor& d, const Tensor& x, Numbers)>
void accumulate_gradient(Gradient& g) {
  const Tensor &d = g.output(), &x = g.saved_input(0);
  if (!g.recording())
    return g.accumulate(0, invoke(fused, {&d, &x}, elementwise_result(x, x.dtype()), g.where(), g.attribute_bytes()));
  g.accumulate(0, composed(d, x, g.attributes<ActivationAttributes>()));
}

template <class F, const OpInfo& fused, Tensor (*composed)(const Tensor& d, const Tensor& x, Numbers)>
constexpr OpInfo activation(const char* name, Precision precision = Precision::promoted, bool internal = false) {
  return {.name = name,
          .forward = forward<F>,
          .gradient = accumulate_gradient<fused, composed>,
          .saves_input_for = {inputs({0})},
          .precision = precision,
          .joining = by_elements,
          .internal = internal};
}

Tensor run(const OpInfo& op, const Arg& x, double first = 0, double second = 0, double third = 0) {
  const Tensor& tensor = tensor_of(op.name, x);
  check_floating(op.name, tensor, x.location());
  return invoke(op, {&tensor}, elementwise_result(tensor, tensor.dtype()), x.location(),
                bytes_of(ActivationAttributes{first, second, third}));
}

}  // namespace

// y = x where x > 0, else s x;  dx = d where x > 0, else s d

constexpr OpInfo leaky_relu_gradient_op = fused_gradient<formulas::LeakyRelu>("leaky_relu_gradient");

constexpr OpInfo leaky_relu_op =
    activation<formulas::LeakyRelu, leaky_relu_gradient_op, [](const Tensor& d, const Tensor& x, Numbers numbers) {
      return where(x > 0.0, d, d * double(numbers.first));
    }>("leaky_relu");

Tensor leaky_relu(const Arg& x, LeakyReluOptions options) { return run(leaky_relu_op, x, options.slope); }

// y = x Φ(x);  dx = d (Φ(x) + x φ(x)), constant beyond ±40

constexpr OpInfo gelu_gradient_op = fused_gradient<formulas::Gelu>("gelu_gradient");

constexpr OpInfo gelu_op = activation<formulas::Gelu, gelu_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
  Tensor near = clamp(x, -40.0, 40.0);
  Tensor distribution = erf(near * 0.7071067811865476) * 0.5 + 0.5;
  return d * (distribution + near * (exp(square(near) * -0.5) * 0.3989422804014327));
}>("gelu");

// y = x (1 + t) / 2, t = tanh √(2/π) (x + 0.044715 x³);
// dx = d ((1 + t) / 2 + x (1 − t²) √(2/π) (1 + 0.134145 x²) / 2), constant beyond ±40

constexpr OpInfo tanh_gelu_gradient_op = fused_gradient<formulas::TanhGelu>("tanh_gelu_gradient");

constexpr OpInfo tanh_gelu_op =
    activation<formulas::TanhGelu, tanh_gelu_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
      Tensor near = clamp(x, -40.0, 40.0), squared = square(near);
      Tensor t = tanh(near * (squared * 0.044715 + 1.0) * 0.7978845608028654);
      Tensor slope = (squared * 0.134145 + 1.0) * 0.7978845608028654;
      return d * ((t + 1.0) * 0.5 + near * 0.5 * (1.0 - square(t)) * slope);
    }>("gelu", Precision::promoted, true);

Tensor gelu(const Arg& x, GeluOptions options) {
  // Both have one name: the attribute tells them apart.
  bool is_approximate = options.approximate == GeluApproximation::tanh;
  return run(is_approximate ? tanh_gelu_op : gelu_op, x, is_approximate);
}

// y = x σ(x);  dx = d σ(x) (1 + x (1 − σ(x))), constant beyond ±1000

constexpr OpInfo silu_gradient_op = fused_gradient<formulas::Silu>("silu_gradient");

constexpr OpInfo silu_op = activation<formulas::Silu, silu_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
  Tensor near = clamp(x, -1000.0, 1000.0), s = sigmoid(near);
  return d * (s * (near * (1.0 - s) + 1.0));
}>("silu");

Tensor silu(const Arg& x) { return run(silu_op, x); }

// y = λ x where x > 0, else λ α (e^(r x) − 1);  dx = λ d where x > 0, else λ α r e^(r x) d

constexpr OpInfo elu_gradient_op = fused_gradient<formulas::Elu>("elu_gradient");

namespace {

Tensor composed_elu_gradient(const Tensor& d, const Tensor& x, Numbers numbers) {
  double alpha = numbers.first, scale = numbers.second, rate = numbers.third;
  return d * scale * where(x > 0.0, 1.0, exp(minimum(x, 0.0) * rate) * (alpha * rate));
}

}  // namespace

constexpr OpInfo elu_op = activation<formulas::Elu, elu_gradient_op, composed_elu_gradient>("elu");

Tensor elu(const Arg& x, EluOptions options) { return run(elu_op, x, options.alpha, 1, 1); }

constexpr OpInfo selu_op = activation<formulas::Elu, elu_gradient_op, composed_elu_gradient>("selu");

Tensor selu(const Arg& x) { return run(selu_op, x, 1.6732632423543772, 1.0507009873554805, 1); }

constexpr OpInfo celu_op = activation<formulas::Elu, elu_gradient_op, composed_elu_gradient>("celu");

Tensor celu(const Arg& x, CeluOptions options) {
  if (options.alpha == 0) fail<Error>("celu", x.location(), "alpha is 0; relu is the limit");
  return run(celu_op, x, options.alpha, 1, 1 / options.alpha);
}

// y = x where β x > t, else log(1 + e^(β x)) / β;  dx = d where β x > t, else d σ(β x)

constexpr OpInfo softplus_gradient_op = fused_gradient<formulas::Softplus>("softplus_gradient");

namespace {

Tensor composed_softplus_gradient(const Tensor& d, const Tensor& x, Numbers numbers) {
  Tensor z = x * double(numbers.first);
  return where(z > double(numbers.second), d, d * sigmoid(z));
}

}  // namespace

constexpr OpInfo softplus_op =
    activation<formulas::Softplus, softplus_gradient_op, composed_softplus_gradient>("softplus", Precision::full);

Tensor softplus(const Arg& x, SoftplusOptions options) {
  if (!(options.beta > 0)) fail<Error>("softplus", x.location(), "beta is {}, not above 0", options.beta);
  return run(softplus_op, x, options.beta, options.threshold);
}

constexpr OpInfo logsigmoid_op =
    activation<formulas::Softplus, softplus_gradient_op, composed_softplus_gradient>("logsigmoid", Precision::full);

Tensor logsigmoid(const Arg& x) { return run(logsigmoid_op, x, -1, std::numeric_limits<double>::infinity()); }

// y = min(max(x, low), high);  dx = 0 where x <= low or x >= high, else d

constexpr OpInfo hardtanh_gradient_op = fused_gradient<formulas::Clamp>("hardtanh_gradient");

constexpr OpInfo hardtanh_op =
    activation<formulas::Clamp, hardtanh_gradient_op, [](const Tensor& d, const Tensor& x, Numbers numbers) {
      return where(logical_or(x <= double(numbers.first), x >= double(numbers.second)), 0.0, d);
    }>("hardtanh");

Tensor hardtanh(const Arg& x, HardtanhOptions options) {
  if (!(options.low <= options.high))
    fail<Error>("hardtanh", x.location(), "there are no numbers from {} to {}", options.low, options.high);
  return run(hardtanh_op, x, options.low, options.high);
}

// y = x tanh(log(1 + e^x));  dx = d (t + x (1 − t²) σ(x)), constant beyond ±1000

constexpr OpInfo mish_gradient_op = fused_gradient<formulas::Mish>("mish_gradient");

constexpr OpInfo mish_op = activation<formulas::Mish, mish_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
  Tensor near = clamp(x, -1000.0, 1000.0);
  Tensor t = tanh(softplus(near)), s = sigmoid(near);
  return d * (t + near * ((1.0 - square(t)) * s));
}>("mish");

Tensor mish(const Arg& x) { return run(mish_op, x); }

// y = x min(max(x + 3, 0), 6) / 6;  dx = 0 where x ≤ −3, d where x ≥ 3, else d (x / 3 + 1/2)

constexpr OpInfo hardswish_gradient_op = fused_gradient<formulas::Hardswish>("hardswish_gradient");

constexpr OpInfo hardswish_op =
    activation<formulas::Hardswish, hardswish_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
      Tensor slope = where(x < 3.0, x / 3.0 + 0.5, 1.0);
      return d * where(x <= -3.0, 0.0, slope);
    }>("hardswish");

Tensor hardswish(const Arg& x) { return run(hardswish_op, x); }

// y = x / (1 + |x|);  dx = d / (1 + |x|)²

constexpr OpInfo softsign_gradient_op = fused_gradient<formulas::Softsign>("softsign_gradient");

constexpr OpInfo softsign_op =
    activation<formulas::Softsign, softsign_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
      return d * square(reciprocal(abs(x) + 1.0));
    }>("softsign");

Tensor softsign(const Arg& x) { return run(softsign_op, x); }

// y = min(max(x + 3, 0), 6) / 6;  dx = d / 6 where −3 < x < 3, else 0

constexpr OpInfo hardsigmoid_gradient_op = fused_gradient<formulas::Hardsigmoid>("hardsigmoid_gradient");

constexpr OpInfo hardsigmoid_op =
    activation<formulas::Hardsigmoid, hardsigmoid_gradient_op, [](const Tensor& d, const Tensor& x, Numbers) {
      return where(logical_or(x <= -3.0, x >= 3.0), 0.0, d / 6.0);
    }>("hardsigmoid");

Tensor hardsigmoid(const Arg& x) { return run(hardsigmoid_op, x); }

// y = 0 where |x| ≤ λ; else x for hardshrink, and x ∓ λ for softshrink;  dx = d where |x| > λ, else 0

namespace {

Tensor composed_shrink_gradient(const Tensor& d, const Tensor& x, Numbers numbers) {
  return where(abs(x) <= double(numbers.first), 0.0, d);
}

Tensor shrink(const OpInfo& op, const Arg& x, double lambda) {
  tensor_of(op.name, x);
  if (!(lambda >= 0)) fail<Error>(op.name, x.location(), "lambda is {}, not at least 0", lambda);
  return run(op, x, lambda);
}

}  // namespace

constexpr OpInfo shrink_gradient_op = fused_gradient<formulas::Hardshrink>("shrink_gradient");
constexpr OpInfo hardshrink_op =
    activation<formulas::Hardshrink, shrink_gradient_op, composed_shrink_gradient>("hardshrink");
constexpr OpInfo softshrink_op =
    activation<formulas::Softshrink, shrink_gradient_op, composed_shrink_gradient>("softshrink");

Tensor hardshrink(const Arg& x, ShrinkOptions options) { return shrink(hardshrink_op, x, options.lambda); }
Tensor softshrink(const Arg& x, ShrinkOptions options) { return shrink(softshrink_op, x, options.lambda); }

// y = x where it is finite, else a number;  dx = d where x is finite, else 0

constexpr OpInfo nan_to_num_gradient_op = fused_gradient<formulas::NanToNum>("nan_to_num_gradient");

constexpr OpInfo nan_to_num_op =
    activation<formulas::NanToNum, nan_to_num_gradient_op,
               [](const Tensor& d, const Tensor& x, Numbers) { return where(isfinite(x), d, 0.0); }>("nan_to_num");

namespace {

double largest_number(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    default: return static_cast<double>(std::numeric_limits<float>::max());
  }
}

}  // namespace

Tensor nan_to_num(const Arg& x, NanToNumOptions options) {
  DType dtype = tensor_of(nan_to_num_op.name, x).dtype();
  if (!is_floating(dtype)) return copy(x);
  double largest = largest_number(dtype);
  return run(nan_to_num_op, x, options.nan, options.positive_infinity.value_or(largest),
             options.negative_infinity.value_or(-largest));
}

// z = 1 where x > 0, else w;  dx = 0,  dw = 0 where x > 0, else d

constexpr OpInfo prelu_slope_op{
    .name = "prelu_slope",
    .forward = binary_forward<formulas::PreluSlope>,
    .gradient =
        [](Gradient& g) {
          accumulate_zeros(g, 0);
          if (g.wants(1)) g.accumulate(1, where(g.saved_input(0) > 0.0, 0.0, g.output()));
        },
    .saves_input_for = {inputs({1})},
    .joining = by_elements,
    .internal = true,
};

// y = x where x > 0, else w x;  dx = d z,  dw = d min(x, 0)

constexpr OpInfo prelu_op{
    .name = "prelu",
    .forward = binary_forward<formulas::LeakyRelu>,
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_weight };
          const Tensor &d = g.output(), &x = g.saved_input(in_x);
          if (g.wants(in_x)) {
            const Tensor& weight = g.saved_input(in_weight);
            g.accumulate_product(in_x, d,
                                 invoke(prelu_slope_op, {&x, &weight}, elementwise_result(x, x.dtype()), g.where()));
          }
          // An infinite element that the slope does not apply to would make a product with the element NaN.
          if (g.wants(in_weight)) g.accumulate(in_weight, d * minimum(x, 0.0));
        },
    .saves_input_for = {inputs({0, 1}), inputs({0})},
    .joining = by_elements,
};

Tensor prelu(const Arg& given_x, const Arg& given_weight) {
  const char* name = prelu_op.name;
  const AutocastArg x(Precision::low, given_x), weight(Precision::low, given_weight);
  const Tensor &tensor = tensor_of(name, x), &slopes = tensor_of(name, weight);
  Location where = given_x.location();
  OpScope caller(where, name);
  check_floating(name, tensor, where);
  if (slopes.dtype() != tensor.dtype())
    fail<DTypeError>(name, where, "the weight {} does not have the dtype of x {}; convert it with to(…, {})",
                     describe(slopes), describe(tensor), name_of(tensor.dtype()));
  check_same_device(name, tensor, slopes, where);
  Shape shape;
  if (slopes.rank() > 1 || slopes.numel() != 1) {
    if (slopes.rank() != 1 || tensor.rank() < 2 || tensor.size(1) != slopes.numel())
      fail<ShapeError>(name, where, "the weight {} is neither one number nor one for each channel on axis 1 of x {}",
                       to_string(slopes.shape()), to_string(tensor.shape()));
    shape.push_back(slopes.numel());
    for (int axis = 2; axis < tensor.rank(); ++axis) shape.push_back(1);
  }
  Tensor beside = slopes.rank() == shape.rank() ? slopes : reshape(slopes, shape);
  return invoke(prelu_op, {&tensor, &beside}, elementwise_result(tensor, tensor.dtype()), where);
}

// glu: y = a σ(b)

Tensor glu(const Arg& x, int axis) {
  const Tensor& tensor = tensor_of("glu", x);
  Location where = x.location();
  check_floating("glu", tensor, where);
  axis = check_axis("glu", axis, tensor, where);
  std::int64_t size = tensor.size(axis);
  if (size % 2 != 0) fail<ShapeError>("glu", where, "axis {} of {} has no two halves", axis, describe(tensor));
  OpScope caller(where, "glu");
  return slice(tensor, axis, 0, size / 2) * sigmoid(slice(tensor, axis, size / 2));
}

OpList detail::activation_ops() {
  static constexpr const OpInfo* ops[] = {&leaky_relu_op,
                                          &leaky_relu_gradient_op,
                                          &gelu_op,
                                          &gelu_gradient_op,
                                          &tanh_gelu_op,
                                          &tanh_gelu_gradient_op,
                                          &silu_op,
                                          &silu_gradient_op,
                                          &elu_op,
                                          &selu_op,
                                          &celu_op,
                                          &elu_gradient_op,
                                          &softplus_op,
                                          &logsigmoid_op,
                                          &softplus_gradient_op,
                                          &hardtanh_op,
                                          &hardtanh_gradient_op,
                                          &mish_op,
                                          &mish_gradient_op,
                                          &hardswish_op,
                                          &hardswish_gradient_op,
                                          &softsign_op,
                                          &softsign_gradient_op,
                                          &hardsigmoid_op,
                                          &hardsigmoid_gradient_op,
                                          &hardshrink_op,
                                          &softshrink_op,
                                          &shrink_gradient_op,
                                          &nan_to_num_op,
                                          &nan_to_num_gradient_op,
                                          &prelu_op,
                                          &prelu_slope_op};
  return ops;
}

}  // namespace reel
