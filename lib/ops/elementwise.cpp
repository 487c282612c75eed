#include <reel/ops/elementwise.h>

#include <reel/ops/create.h>

#include "../core/invoke.h"
#include "../core/kernel_table.h"
#include "../tape/gradient.h"
#include "operand.h"
#include "registry.h"

namespace reel {

using namespace detail;

namespace {

template <Unary op>
void unary_forward(Call& call) {
  kernels(call.output().device).unary[static_cast<int>(op)](call.output(), call.input(0));
}

template <Binary op>
void binary_forward(Call& call) {
  kernels(call.output().device).binary[static_cast<int>(op)](call.output(), call.input(0), call.input(1));
}

bool same_form(const Body& a, const Body& b) {
  if (a.dtype != b.dtype || a.rank != b.rank || a.device != b.device) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

// What dtypes a binary op takes and gives.
enum class Types { arithmetic, no_bool, quotient, comparison };

[[gnu::noinline]] Tensor binary_general(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  Location where = a.location();
  DType dtype = common_dtype(op.name, a, b);
  if (types == Types::quotient && !is_floating(dtype)) dtype = DType::f32;
  if (types == Types::no_bool && dtype == DType::boolean)
    fail<DTypeError>(op.name, where, "bools cannot be operands; convert one with to(x, i32), or compare them");
  Operand x(op.name, a, dtype, b), y(op.name, b, dtype, a);
  check_same_device(op.name, *x, *y, where);
  Shape shape;
  if (!broadcast(x->shape(), y->shape(), shape))
    fail<ShapeError>(op.name, where, "shapes do not broadcast: a {}, b {}", to_string(x->shape()),
                     to_string(y->shape()));
  return invoke(op, {&*x, &*y}, {shape, types == Types::comparison ? DType::boolean : dtype, x->device()}, where);
}

inline Tensor binary(const OpInfo& op, const Arg& a, const Arg& b, Types types) {
  if (a.is_tensor() && b.is_tensor() && a.tensor()->defined() && b.tensor()->defined()) [[likely]] {
    const Body& x = a.tensor()->body();
    if (same_form(x, b.tensor()->body()) && is_floating(x.dtype)) [[likely]]
      return invoke(op, {a.tensor(), b.tensor()}, {x, types == Types::comparison ? DType::boolean : x.dtype},
                    a.location());
  }
  return binary_general(op, a, b, types);
}

Tensor unary(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  return invoke(op, {&tensor}, {tensor.body(), tensor.dtype()}, x.location());
}

// For functions whose results are not integers.
Tensor floating_unary(const OpInfo& op, const Arg& x) {
  const Tensor& tensor = tensor_of(op.name, x);
  if (is_floating(tensor.dtype())) [[likely]]
    return unary(op, x);
  return unary(op, Arg(to(x, DType::f32), x.location()));
}

Tensor number_unary(const OpInfo& op, const Arg& x) {
  if (tensor_of(op.name, x).dtype() == DType::boolean)
    fail<DTypeError>(op.name, x.location(), "takes numbers, not {}; convert it with to(x, i32)", describe(*x.tensor()));
  return unary(op, x);
}

}  // namespace

// y = a + b;  da = d,  db = d

constexpr OpInfo add_op{
    .name = "add",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::add>,
    .gradient =
        [](Gradient& g) {
          g.give(0, g.output());
          g.give(1, g.output());
        },
};

Tensor add(const Arg& a, const Arg& b) { return binary(add_op, a, b, Types::arithmetic); }

// y = a − b;  da = d,  db = −d

constexpr OpInfo sub_op{
    .name = "sub",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::sub>,
    .gradient =
        [](Gradient& g) {
          g.give(0, g.output());
          if (g.wants(1)) g.give(1, -g.output());
        },
};

Tensor sub(const Arg& a, const Arg& b) { return binary(sub_op, a, b, Types::no_bool); }

// y = a b;  da = d b,  db = d a

constexpr OpInfo mul_op{
    .name = "mul",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::mul>,
    .gradient =
        [](Gradient& g) {
          if (g.wants(0)) g.give_product(0, g.output(), g.saved_input(1));
          if (g.wants(1)) g.give_product(1, g.output(), g.saved_input(0));
        },
    .saves_input_for = {inputs({1}), inputs({0})},
};

Tensor mul(const Arg& a, const Arg& b) { return binary(mul_op, a, b, Types::arithmetic); }

// y = a / b;  da = d / b,  db = −d y / b

constexpr OpInfo div_op{
    .name = "div",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::div>,
    .gradient =
        [](Gradient& g) {
          Tensor quotient = g.output() / g.saved_input(1);
          if (g.wants(1)) g.give(1, -(quotient * g.saved_output()));
          g.give(0, std::move(quotient));
        },
    .saves_input_for = {0, inputs({0, 1})},
    .saves_output_for = inputs({1}),
};

Tensor div(const Arg& a, const Arg& b) { return binary(div_op, a, b, Types::quotient); }

// y = a^b;  da = d b a^(b − 1), 0 where a = b = 0;  db = d y log a, 0 where a = 0 and b ≥ 0

namespace {

// d/da a^b. What is masked is kept finite, because 0 · ∞ would come back as NaN, here or in a further derivative.
Tensor base_derivative(const Tensor& a, const Tensor& b, bool differentiable) {
  Tensor zero = b == 0.0;
  Tensor power = where(zero, 1.0, b);
  if (!differentiable) return where(zero, 0.0, b * pow(a, power - 1.0));
  // At b = 0 the derivative is b / a, which is 0 but has a derivative by b.
  Tensor divisor = where(mul(zero, a != 0.0), a, 1.0);
  return where(zero, where(zero, b, 0.0) / divisor, power * pow(where(zero, 1.0, a), power - 1.0));
}

}  // namespace

constexpr OpInfo pow_op{
    .name = "pow",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::pow>,
    .gradient =
        [](Gradient& g) {
          const Tensor& d = g.output();
          const Tensor& b = g.saved_input(1);
          if (g.wants(0)) g.give(0, d * base_derivative(g.saved_input(0), b, g.recording()));
          if (g.wants(1)) {
            const Tensor& a = g.saved_input(0);
            // The logarithm's own derivative must not be formed at 0 either.
            Tensor vanishes = mul(a == 0.0, b >= 0.0);
            g.give(1, where(vanishes, 0.0, d * g.saved_output() * log(where(vanishes, 1.0, a))));
          }
        },
    .saves_input_for = {inputs({0, 1}), inputs({0, 1})},
    .saves_output_for = inputs({1}),
};

Tensor pow(const Arg& a, const Arg& b) { return binary(pow_op, a, b, Types::no_bool); }

// y = −x;  dx = −d

constexpr OpInfo neg_op{
    .name = "neg",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::neg>,
    .gradient = [](Gradient& g) { g.give(0, -g.output()); },
};

Tensor neg(const Arg& x) { return number_unary(neg_op, x); }

// y = e^x;  dx = d y

constexpr OpInfo exp_op{
    .name = "exp",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::exp>,
    .gradient = [](Gradient& g) { g.give_product(0, g.output(), g.saved_output()); },
    .saves_output_for = inputs({0}),
};

Tensor exp(const Arg& x) { return floating_unary(exp_op, x); }

// y = log x;  dx = d / x

constexpr OpInfo log_op{
    .name = "log",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::log>,
    .gradient = [](Gradient& g) { g.give(0, g.output() / g.saved_input(0)); },
    .saves_input_for = {inputs({0})},
};

Tensor log(const Arg& x) { return floating_unary(log_op, x); }

// y = √x;  dx = d / (2 y)

constexpr OpInfo sqrt_op{
    .name = "sqrt",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::sqrt>,
    .gradient = [](Gradient& g) { g.give(0, g.output() / (g.saved_output() * 2.0)); },
    .saves_output_for = inputs({0}),
};

Tensor sqrt(const Arg& x) { return floating_unary(sqrt_op, x); }

// y = x²;  dx = 2 d x

constexpr OpInfo square_op{
    .name = "square",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::square>,
    .gradient = [](Gradient& g) { g.give(0, g.output() * g.saved_input(0) * 2.0); },
    .saves_input_for = {inputs({0})},
};

Tensor square(const Arg& x) { return number_unary(square_op, x); }

// z = d (1 − y²);  dd = e (1 − y²),  dy = −2 e d y

constexpr OpInfo tanh_gradient_op{
    .name = "tanh_gradient",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::tanh_gradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.give(0, e * (1.0 - square(y)));
          if (g.wants(1)) g.give(1, e * g.saved_input(0) * y * -2.0);
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
};

// y = tanh x;  dx = d (1 − y²)

constexpr OpInfo tanh_op{
    .name = "tanh",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::tanh>,
    .gradient =
        [](Gradient& g) { g.give(0, binary(tanh_gradient_op, g.output(), g.saved_output(), Types::arithmetic)); },
    .saves_output_for = inputs({0}),
};

Tensor tanh(const Arg& x) { return floating_unary(tanh_op, x); }

// z = d y (1 − y);  dd = e y (1 − y),  dy = e d (1 − 2 y)

constexpr OpInfo sigmoid_gradient_op{
    .name = "sigmoid_gradient",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::sigmoid_gradient>,
    .gradient =
        [](Gradient& g) {
          const Tensor& e = g.output();
          const Tensor& y = g.saved_input(1);
          if (g.wants(0)) g.give(0, e * (y * (1.0 - y)));
          if (g.wants(1)) g.give(1, e * g.saved_input(0) * (1.0 - y * 2.0));
        },
    .saves_input_for = {inputs({1}), inputs({0, 1})},
};

// y = 1 / (1 + e^−x);  dx = d y (1 − y)

constexpr OpInfo sigmoid_op{
    .name = "sigmoid",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::sigmoid>,
    .gradient =
        [](Gradient& g) { g.give(0, binary(sigmoid_gradient_op, g.output(), g.saved_output(), Types::arithmetic)); },
    .saves_output_for = inputs({0}),
};

Tensor sigmoid(const Arg& x) { return floating_unary(sigmoid_op, x); }

// z = 0 where y = 0, else d;  dd = 0 where y = 0, else e

constexpr OpInfo relu_gradient_op{
    .name = "relu_gradient",
    .arity = 2,
    .batching = Batching::elementwise,
    .forward = binary_forward<Binary::relu_gradient>,
    .gradient =
        [](Gradient& g) {
          if (g.wants(0)) g.give(0, where(g.saved_input(1) == 0.0, 0.0, g.output()));
          if (g.wants(1)) g.give(1, zeros_like(g.output()));
        },
    .saves_input_for = {0, inputs({0})},
};

// y = max(x, 0);  dx = 0 where y = 0, else d

constexpr OpInfo relu_op{
    .name = "relu",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = unary_forward<Unary::relu>,
    .gradient =
        [](Gradient& g) { g.give(0, binary(relu_gradient_op, g.output(), g.saved_output(), Types::arithmetic)); },
    .saves_output_for = inputs({0}),
};

Tensor relu(const Arg& x) { return number_unary(relu_op, x); }

// Comparisons have no gradient.

namespace {

template <Binary op>
constexpr OpInfo comparison_op(const char* name) {
  return {.name = name, .arity = 2, .batching = Batching::elementwise, .forward = binary_forward<op>};
}

constexpr OpInfo equal_op = comparison_op<Binary::equal>("equal");
constexpr OpInfo not_equal_op = comparison_op<Binary::not_equal>("not_equal");
constexpr OpInfo less_op = comparison_op<Binary::less>("less");
constexpr OpInfo less_equal_op = comparison_op<Binary::less_equal>("less_equal");
constexpr OpInfo greater_op = comparison_op<Binary::greater>("greater");
constexpr OpInfo greater_equal_op = comparison_op<Binary::greater_equal>("greater_equal");

}  // namespace

Tensor equal(const Arg& a, const Arg& b) { return binary(equal_op, a, b, Types::comparison); }
Tensor not_equal(const Arg& a, const Arg& b) { return binary(not_equal_op, a, b, Types::comparison); }
Tensor less(const Arg& a, const Arg& b) { return binary(less_op, a, b, Types::comparison); }
Tensor less_equal(const Arg& a, const Arg& b) { return binary(less_equal_op, a, b, Types::comparison); }
Tensor greater(const Arg& a, const Arg& b) { return binary(greater_op, a, b, Types::comparison); }
Tensor greater_equal(const Arg& a, const Arg& b) { return binary(greater_equal_op, a, b, Types::comparison); }

// y = a where c, else b;  da = d where c, else 0;  db = 0 where c, else d

constexpr OpInfo where_op{
    .name = "where",
    .arity = 3,
    .batching = Batching::elementwise,
    .forward =
        [](Call& call) {
          kernels(call.output().device).where(call.output(), call.input(0), call.input(1), call.input(2));
        },
    .gradient =
        [](Gradient& g) {
          if (g.wants(1)) g.give(1, where(g.saved_input(0), g.output(), 0.0));
          if (g.wants(2)) g.give(2, where(g.saved_input(0), 0.0, g.output()));
        },
    .saves_input_for = {inputs({1, 2})},
};

Tensor where(const Arg& condition, const Arg& a, const Arg& b) {
  const char* name = where_op.name;
  Location place = condition.location();
  const Tensor& chosen = tensor_of(name, condition);
  if (chosen.dtype() != DType::boolean)
    fail<DTypeError>(name, place, "the condition is {}, not bool; compare it with something", describe(chosen));
  DType dtype = common_dtype(name, a, b);
  Operand x(name, a, dtype, condition), y(name, b, dtype, condition);
  check_same_device(name, *x, *y, place);
  check_same_device(name, chosen, *x, place);
  Shape shape;
  if (!broadcast(x->shape(), y->shape(), shape) || !broadcast(shape, chosen.shape(), shape))
    fail<ShapeError>(name, place, "shapes do not broadcast: condition {}, a {}, b {}", to_string(chosen.shape()),
                     to_string(x->shape()), to_string(y->shape()));
  return invoke(where_op, {&chosen, &*x, &*y}, {shape, dtype, chosen.device()}, place);
}

// y = x in another dtype;  dx = d in x's dtype

namespace {

void cast_forward(Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); }

}  // namespace

constexpr OpInfo cast_op{
    .name = "to",
    .arity = 1,
    .batching = Batching::elementwise,
    .forward = cast_forward,
    .gradient = [](Gradient& g) { g.give(0, to(g.output(), g.input_dtype(0))); },
};

// To integers and bools nothing flows back.
constexpr OpInfo cast_to_integer_op{
    .name = "to", .arity = 1, .batching = Batching::elementwise, .forward = cast_forward};

Tensor to(const Arg& x, DType dtype) {
  const Tensor& tensor = tensor_of("to", x);
  if (tensor.dtype() == dtype) return tensor;
  return invoke(is_floating(dtype) ? cast_op : cast_to_integer_op, {&tensor}, {tensor.body(), dtype}, x.location());
}

std::span<const RegisteredOp> detail::elementwise_ops() {
  static constexpr RegisteredOp ops[] = {
      {.name = "add", .info = &add_op},
      {.name = "sub", .info = &sub_op},
      {.name = "mul", .info = &mul_op},
      {.name = "div", .info = &div_op},
      {.name = "pow", .info = &pow_op},
      {.name = "neg", .info = &neg_op},
      {.name = "exp", .info = &exp_op},
      {.name = "log", .info = &log_op},
      {.name = "sqrt", .info = &sqrt_op},
      {.name = "square", .info = &square_op},
      {.name = "tanh", .info = &tanh_op},
      {.name = "tanh_gradient", .info = &tanh_gradient_op, .internal = true},
      {.name = "sigmoid", .info = &sigmoid_op},
      {.name = "sigmoid_gradient", .info = &sigmoid_gradient_op, .internal = true},
      {.name = "relu", .info = &relu_op},
      {.name = "relu_gradient", .info = &relu_gradient_op, .internal = true},
      {.name = "equal", .info = &equal_op},
      {.name = "not_equal", .info = &not_equal_op},
      {.name = "less", .info = &less_op},
      {.name = "less_equal", .info = &less_equal_op},
      {.name = "greater", .info = &greater_op},
      {.name = "greater_equal", .info = &greater_equal_op},
      {.name = "where", .info = &where_op},
      {.name = "to", .info = &cast_op},
      {.name = "to", .info = &cast_to_integer_op, .internal = true},
  };
  return ops;
}

}  // namespace reel
