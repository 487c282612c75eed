#include <limits>
#include <numbers>

#include <reel/ops.h>

#include "../../../ops/elementwise/attributes.h"
#include "../../../ops/if_needed.h"
#include "../model_tensor.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

struct Expression {
  Writer& w;
  DType dtype;
  std::string number(double value) const { return w.scalar(value, dtype); }
  std::string add(const std::string& a, const std::string& b) const { return w.node("Add", {a, b}); }
  std::string sub(const std::string& a, const std::string& b) const { return w.node("Sub", {a, b}); }
  std::string mul(const std::string& a, const std::string& b) const { return w.node("Mul", {a, b}); }
  std::string div(const std::string& a, const std::string& b) const { return w.node("Div", {a, b}); }
  std::string where(const std::string& c, const std::string& a, const std::string& b) const {
    return w.node("Where", {c, a, b});
  }
};

Expression of(Writer& w) { return {w, w.widen()}; }
bool floats(Writer& w) { return is_floating(w.tensor(0).dtype()); }
const ActivationAttributes& numbers_of(Writer& w) { return w.attributes<ActivationAttributes>(); }

void write_identity(Writer& w) { w.result(w.node("Identity", {w.in(0)})); }

void write_square(Writer& w) { w.result(w.node("Mul", {w.in(0), w.in(0)})); }
void write_trunc(Writer& w) {
  if (!floats(w)) return write_identity(w);
  w.result(w.node("Mul", {w.node("Sign", {w.in(0)}), w.node("Floor", {w.node("Abs", {w.in(0)})})}));
}
template <char rounding>
void write_rounding(Writer& w) {
  if (!floats(w)) return write_identity(w);
  w.result(w.node(rounding == 'f' ? "Floor" : rounding == 'c' ? "Ceil" : "Round", {w.in(0)}));
}
void write_relu(Writer& w) {
  w.result(floats(w) ? w.node("Relu", {w.in(0)}) : w.node("Max", {w.in(0), w.scalar(0, w.tensor(0).dtype())}));
}
void write_rsqrt(Writer& w) { w.result(w.node("Reciprocal", {w.node("Sqrt", {w.in(0)})})); }
void write_expm1(Writer& w) {
  Expression e = of(w);
  // Near 0 by its series, where the difference would have few correct digits.
  std::string x = w.in(0), direct = e.sub(w.node("Exp", {x}), e.number(1));
  std::string series = e.mul(x, e.add(e.number(1), e.mul(x, e.add(e.number(0.5), e.mul(x, e.number(1.0 / 6))))));
  w.result(e.where(w.node("Less", {w.node("Abs", {x}), e.number(1e-2)}), series, direct));
}
void write_log1p(Writer& w) {
  Expression e = of(w);
  std::string x = w.in(0), direct = w.node("Log", {e.add(e.number(1), x)});
  std::string series = e.mul(x, e.sub(e.number(1), e.mul(x, e.sub(e.number(0.5), e.mul(x, e.number(1.0 / 3))))));
  w.result(e.where(w.node("Less", {w.node("Abs", {x}), e.number(1e-2)}), series, direct));
}
void write_log2(Writer& w) {
  Expression e = of(w);
  w.result(e.mul(w.node("Log", {w.in(0)}), e.number(1 / std::numbers::ln2)));
}
void write_log10(Writer& w) {
  Expression e = of(w);
  w.result(e.mul(w.node("Log", {w.in(0)}), e.number(1 / std::numbers::ln10)));
}
void write_exp2(Writer& w) { w.result(w.node("Pow", {of(w).number(2), w.in(0)})); }
void write_logit(Writer& w) {
  Expression e = of(w);
  w.result(e.sub(w.node("Log", {w.in(0)}), w.node("Log", {e.sub(e.number(1), w.in(0))})));
}
void write_sinc(Writer& w) {
  Expression e = of(w);
  std::string angle = e.mul(w.in(0), e.number(std::numbers::pi)), zero = w.node("Equal", {angle, e.number(0)});
  w.result(e.where(zero, e.number(1), e.div(w.node("Sin", {angle}), e.where(zero, e.number(1), angle))));
}
void write_atan2(Writer& w) {
  Expression e = of(w);
  std::string y = w.in(0), x = w.in(1), zero = e.number(0), pi = e.number(std::numbers::pi);
  std::string upper = w.node("GreaterOrEqual", {y, zero});
  std::string near = w.node("Atan", {e.div(y, e.where(w.node("Equal", {x, zero}), e.number(1), x))});
  std::string left = e.where(upper, e.add(near, pi), e.sub(near, pi));
  std::string half = e.mul(w.node("Sign", {y}), e.number(std::numbers::pi / 2));
  w.result(e.where(w.node("Greater", {x, zero}), near, e.where(w.node("Less", {x, zero}), left, half)));
}
void write_erfc(Writer& w) {
  Expression e = of(w);
  w.result(e.sub(e.number(1), w.node("Erf", {w.in(0)})));
}
void write_isfinite(Writer& w) {
  if (!floats(w)) w.refuse("its operand has integers, for which ONNX has no such test");
  w.result(w.node("Not", {w.node("Or", {w.node("IsInf", {w.in(0)}), w.node("IsNaN", {w.in(0)})})}));
}
template <bool infinite>
void write_test(Writer& w) {
  if (!floats(w)) w.refuse("its operand has integers, for which ONNX has no such test");
  w.result(w.node(infinite ? "IsInf" : "IsNaN", {w.in(0)}));
}

/// An op of bools: what has another dtype is compared with 0.
std::string truth(Writer& w, std::size_t input) {
  return w.tensor(input).dtype() == boolean ? w.in(input) : w.cast(w.in(input), boolean);
}
template <char op>
void write_logical(Writer& w) {
  const char* type = op == '&' ? "And" : op == '|' ? "Or" : "Xor";
  w.result(w.node(type, {truth(w, 0), truth(w, 1)}));
}
void write_not(Writer& w) { w.result(w.node("Not", {truth(w, 0)})); }
template <char op>
void write_bitwise(Writer& w) {
  if (w.tensor(0).dtype() != boolean) w.refuse("operator set 17 of ONNX has no bitwise operators on integers");
  write_logical<op>(w);
}

void write_add(Writer& w) {
  if (w.out().dtype() == boolean) return write_logical<'|'>(w);
  w.result(w.node("Add", {w.in(0), w.in(1)}));
}
void write_mul(Writer& w) {
  if (w.out().dtype() == boolean) return write_logical<'&'>(w);
  w.result(w.node("Mul", {w.in(0), w.in(1)}));
}
std::string whole_mod(Writer& w) { return w.node("Mod", {w.in(0), w.in(1)}); }
std::string floored(Writer& w) { return w.node("Floor", {w.node("Div", {w.in(0), w.in(1)})}); }
void write_floor_divide(Writer& w) {
  if (floats(w)) return w.result(floored(w));
  w.result(w.node("Div", {w.node("Sub", {w.in(0), whole_mod(w)}), w.in(1)}));
}
void write_mod(Writer& w) {
  if (!floats(w)) return w.result(whole_mod(w));
  w.result(w.node("Sub", {w.in(0), w.node("Mul", {w.in(1), floored(w)})}));
}
void write_fmod(Writer& w) { w.result(w.node("Mod", {w.in(0), w.in(1)}, {attribute("fmod", std::int64_t{1})})); }
void write_logaddexp(Writer& w) {
  Expression e = of(w);
  std::string a = w.in(0), b = w.in(1), most = w.node("Max", {a, b});
  std::string apart = w.node("Neg", {w.node("Abs", {e.sub(a, b)})});
  std::string more = w.node("Log", {e.add(e.number(1), w.node("Exp", {apart}))});
  // Equal operands may be infinite.
  w.result(e.add(most, e.where(w.node("Equal", {a, b}), e.number(std::numbers::ln2), more)));
}

/// Comparisons of ONNX take no bools, but for Equal.
template <char op>
void write_comparison(Writer& w) {
  std::string a = w.in(0), b = w.in(1);
  DType dtype = w.tensor(0).dtype();
  bool is_equality = op == '=' || op == '!';
  if (dtype == boolean && !is_equality) a = w.cast(a, i32), b = w.cast(b, i32);
  if ((dtype == u8 || dtype == i8 || dtype == i16) && is_equality) a = w.cast(a, i32), b = w.cast(b, i32);
  if (op == '!') return w.result(w.node("Not", {w.node("Equal", {a, b})}));
  const char* type = op == '='   ? "Equal"
                     : op == '<' ? "Less"
                     : op == '>' ? "Greater"
                     : op == 'l' ? "LessOrEqual"
                                 : "GreaterOrEqual";
  w.result(w.node(type, {a, b}));
}

template <bool largest>
void write_extreme(Writer& w) {
  if (w.out().dtype() == boolean) return largest ? write_logical<'|'>(w) : write_logical<'&'>(w);
  w.result(w.node(largest ? "Max" : "Min", {w.in(0), w.in(1)}));
}
void write_clamp(Writer& w) { w.result(w.node("Min", {w.node("Max", {w.in(0), w.in(1)}), w.in(2)})); }
void write_lerp(Writer& w) {
  Expression e = of(w);
  w.result(e.add(w.in(0), e.mul(w.in(2), e.sub(w.in(1), w.in(0)))));
}

void write_leaky_relu(Writer& w) {
  Expression e = of(w);
  std::string x = w.in(0);
  w.result(e.where(w.node("Greater", {x, e.number(0)}), x, e.mul(x, e.number(numbers_of(w).first))));
}
void write_gelu(Writer& w) {
  Expression e = of(w);
  std::string x = w.in(0), inner;
  if (numbers_of(w).first != 0) {
    std::string cubic = e.add(e.number(1), e.mul(e.number(0.044715), e.mul(x, x)));
    inner = w.node("Tanh", {e.mul(e.mul(e.number(0.7978845608028654), x), cubic)});
  } else {
    inner = w.node("Erf", {e.mul(x, e.number(0.7071067811865476))});
  }
  w.result(e.mul(e.mul(e.number(0.5), x), e.add(e.number(1), inner)));
}
void write_silu(Writer& w) { w.result(w.node("Mul", {w.in(0), w.node("Sigmoid", {w.in(0)})})); }
void write_elu(Writer& w) {
  Expression e = of(w);
  auto [alpha, scale, rate] = numbers_of(w);
  std::string x = w.in(0), exponent = w.node("Min", {x, e.number(0)});
  if (rate != 1) exponent = e.mul(exponent, e.number(rate));
  std::string below = e.sub(w.node("Exp", {exponent}), e.number(1));
  std::string y = e.where(w.node("Greater", {x, e.number(0)}), x, e.mul(e.number(alpha), below));
  w.result(scale == 1 ? y : e.mul(y, e.number(scale)));
}
void write_softplus(Writer& w) {
  Expression e = of(w);
  auto [beta, threshold, unused] = numbers_of(w);
  std::string x = w.in(0), z = e.mul(x, e.number(beta));
  std::string decay = w.node("Exp", {w.node("Neg", {w.node("Abs", {z})})});
  std::string y = e.add(w.node("Max", {z, e.number(0)}), w.node("Log", {e.add(e.number(1), decay)}));
  w.result(e.where(w.node("Greater", {z, e.number(threshold)}), x, e.div(y, e.number(beta))));
}
void write_hardtanh(Writer& w) {
  Expression e = of(w);
  auto [low, high, unused] = numbers_of(w);
  w.result(w.node("Min", {w.node("Max", {w.in(0), e.number(low)}), e.number(high)}));
}
void write_mish(Writer& w) {
  Expression e = of(w);
  std::string x = w.in(0), exponent = w.node("Exp", {w.node("Min", {x, e.number(20)})});
  std::string n = e.mul(exponent, e.add(exponent, e.number(2)));
  w.result(e.mul(x, e.div(n, e.add(n, e.number(2)))));
}
void write_hardswish(Writer& w) {
  Expression e = of(w);
  std::string x = w.in(0), shifted = w.node("Max", {e.add(x, e.number(3)), e.number(0)});
  w.result(e.mul(x, e.div(w.node("Min", {shifted, e.number(6)}), e.number(6))));
}
void write_softsign(Writer& w) {
  Expression e = of(w);
  w.result(e.div(w.in(0), e.add(e.number(1), w.node("Abs", {w.in(0)}))));
}

void write_hardsigmoid(Writer& w) {
  Expression e = of(w);
  std::string shifted = w.node("Max", {e.add(w.in(0), e.number(3)), e.number(0)});
  w.result(e.div(w.node("Min", {shifted, e.number(6)}), e.number(6)));
}
template <bool soft>
void write_shrink(Writer& w) {
  Expression e = of(w);
  double lambda = numbers_of(w).first;
  std::string x = w.in(0);
  std::string near = w.node("Min", {w.node("Max", {x, e.number(-lambda)}), e.number(lambda)});
  if (soft) return w.result(e.sub(x, near));
  w.result(e.where(w.node("Equal", {x, near}), e.number(0), x));
}

void write_nan_to_num(Writer& w) {
  Expression e = of(w);
  const auto& [nan, positive, negative] = numbers_of(w);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::string x = w.in(0), below = w.node("Equal", {x, e.number(-infinity)});
  std::string y =
      e.where(w.node("Equal", {x, e.number(infinity)}), e.number(positive), e.where(below, e.number(negative), x));
  w.result(e.where(w.node("IsNaN", {x}), e.number(nan), y));
}

void write_to(Writer& w) {
  if (w.tensor(0).dtype() == w.out().dtype()) return write_identity(w);
  w.result(w.cast(w.in(0), w.out().dtype()));
}
/// y(values) of in-place ops: what is written, in the shape and dtype of what is overwritten.
void write_copy_in_place(Writer& w) {
  std::size_t from = w.input_count() - 1;
  std::string values = w.in_as(from, w.out().dtype());
  w.result(w.node("Expand", {values, w.sizes(w.out_shape())}));
}

template <Tensor (*op)(const Arg&)>
Results unary(const NodeCall& c) {
  return {op(c.first())};
}
template <Tensor (*op)(const Arg&, const Arg&)>
Results binary(const NodeCall& c) {
  return {op(c.first(), c.in(1))};
}
// ONNX's Max, Min: any number of operands.
template <Tensor (*op)(const Arg&, const Arg&)>
Results of_all(const NodeCall& c) {
  Tensor result = c.in(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) result = op(Arg(result, c.where()), c.in(i));
  return {result};
}

Results divide(const NodeCall& c) {
  const Tensor &a = c.in(0), &b = c.in(1);
  if (is_floating(a.dtype())) return {div(c.first(), b)};
  // Towards 0.
  return {floor_divide(sub(c.first(), fmod(c.first(), b)), b)};
}
Results modulo(const NodeCall& c) {
  if (c.integer("fmod", 0) != 0) return {fmod(c.first(), c.in(1))};
  if (is_floating(c.in(0).dtype())) c.refuse("fmod has to be 1 for floating numbers");
  return {mod(c.first(), c.in(1))};
}
Results choose(const NodeCall& c) { return {where(c.first(), c.in(1), c.in(2))}; }
Results convert_to(const NodeCall& c) {
  DType dtype;
  if (!dtype_of(static_cast<OnnxType>(c.integer("to", 0)), dtype)) c.refuse("reel has no such element type");
  return {to_if_needed(c.first(), dtype)};
}
Results run_identity(const NodeCall& c) { return {c.in(0)}; }
Results leaky(const NodeCall& c) { return {leaky_relu(c.first(), {.slope = c.number("alpha", 0.01)})}; }
Results prelu_of(const NodeCall& c) {
  const Tensor &x = c.in(0), &slope = c.in(1);
  return {where(x > 0, x, x * slope)};
}
Results constant(const NodeCall& c) {
  for (const OnnxAttribute& attribute : c.node().attributes)
    if (attribute.kind == OnnxAttribute::Kind::tensor) return {tensor_from(*attribute.tensor, model_name, c.where())};
  c.refuse("it has no tensor");
}

}  // namespace

std::span<const Operator> elementwise_operators() {
  static constexpr Operator table[] = {
      {"neg", "Neg", unary<reel::neg>},
      {"abs", "Abs", unary<reel::abs>},
      {"sign", "Sign", unary<reel::sign>},
      {.ops = "square", .write = write_square},
      {"relu", "Relu", unary<reel::relu>, write_relu},
      {"floor", "Floor", unary<reel::floor>, write_rounding<'f'>},
      {"ceil", "Ceil", unary<reel::ceil>, write_rounding<'c'>},
      {"round", "Round", unary<reel::round>, write_rounding<'r'>},
      {.ops = "trunc", .write = write_trunc},
      {"reciprocal", "Reciprocal", unary<reel::reciprocal>},
      {"sqrt", "Sqrt", unary<reel::sqrt>},
      {.ops = "rsqrt", .write = write_rsqrt},
      {"exp", "Exp", unary<reel::exp>},
      {.ops = "expm1", .write = write_expm1},
      {"log", "Log", unary<reel::log>},
      {.ops = "log1p", .write = write_log1p},
      {.ops = "log2", .write = write_log2},
      {.ops = "log10", .write = write_log10},
      {.ops = "exp2", .write = write_exp2},
      {.ops = "logit", .write = write_logit},
      {"sin", "Sin", unary<reel::sin>},
      {"cos", "Cos", unary<reel::cos>},
      {"tan", "Tan", unary<reel::tan>},
      {"asin", "Asin", unary<reel::asin>},
      {"acos", "Acos", unary<reel::acos>},
      {"atan", "Atan", unary<reel::atan>},
      {.ops = "atan2", .write = write_atan2},
      {"sinh", "Sinh", unary<reel::sinh>},
      {"cosh", "Cosh", unary<reel::cosh>},
      {"asinh", "Asinh", unary<reel::asinh>},
      {"acosh", "Acosh", unary<reel::acosh>},
      {"atanh", "Atanh", unary<reel::atanh>},
      {"tanh", "Tanh", unary<reel::tanh>},
      {"sigmoid", "Sigmoid", unary<reel::sigmoid>},
      {.ops = "sinc", .write = write_sinc},
      {"erf", "Erf", unary<reel::erf>},
      {.ops = "erfc", .write = write_erfc},
      {"isnan", "IsNaN", unary<reel::isnan>, write_test<false>},
      {"isinf", "IsInf", unary<reel::isinf>, write_test<true>},
      {.ops = "isfinite", .write = write_isfinite},
      {"logical_and", "And", binary<reel::logical_and>, write_logical<'&'>},
      {"logical_or", "Or", binary<reel::logical_or>, write_logical<'|'>},
      {"logical_xor", "Xor", binary<reel::logical_xor>, write_logical<'^'>},
      {"logical_not", "Not", unary<reel::logical_not>, write_not},
      {.ops = "bitwise_and", .write = write_bitwise<'&'>},
      {.ops = "bitwise_or", .write = write_bitwise<'|'>},
      {.ops = "bitwise_xor", .write = write_bitwise<'^'>},
      {"add", "Add", binary<reel::add>, write_add},
      {"sub", "Sub", binary<reel::sub>},
      {"mul", "Mul", binary<reel::mul>, write_mul},
      {"div", "Div", divide},
      {"pow", "Pow", binary<reel::pow>},
      {.ops = "floor_divide", .write = write_floor_divide},
      {"mod", "Mod", modulo, write_mod},
      {.ops = "fmod", .write = write_fmod},
      {.ops = "logaddexp", .write = write_logaddexp},
      {"equal", "Equal", binary<reel::equal>, write_comparison<'='>},
      {.ops = "not_equal", .write = write_comparison<'!'>},
      {"less", "Less", binary<reel::less>, write_comparison<'<'>},
      {"less_equal", "LessOrEqual", binary<reel::less_equal>, write_comparison<'l'>},
      {"greater", "Greater", binary<reel::greater>, write_comparison<'>'>},
      {"greater_equal", "GreaterOrEqual", binary<reel::greater_equal>, write_comparison<'g'>},
      {"maximum", "Max", of_all<reel::maximum>, write_extreme<true>},
      {"minimum", "Min", of_all<reel::minimum>, write_extreme<false>},
      {.ops = "clamp", .write = write_clamp},
      {"where", "Where", choose},
      {.ops = "lerp", .write = write_lerp},
      // Written with a slope in the dtype of x, where the operator's own is an f32.
      {"leaky_relu", "LeakyRelu", leaky, write_leaky_relu},
      {.ops = "gelu", .write = write_gelu},
      {.ops = "silu", .write = write_silu},
      {.ops = "elu selu celu", .write = write_elu},
      {.ops = "softplus logsigmoid", .write = write_softplus},
      {.ops = "hardtanh", .write = write_hardtanh},
      {.ops = "mish", .write = write_mish},
      {.ops = "hardswish", .write = write_hardswish},
      {.ops = "softsign", .write = write_softsign},
      {.ops = "hardsigmoid", .write = write_hardsigmoid},
      {.ops = "hardshrink", .write = write_shrink<false>},
      {.ops = "softshrink", .write = write_shrink<true>},
      {"prelu", "PRelu", prelu_of},
      {.ops = "nan_to_num", .write = write_nan_to_num},
      {"to", "Cast", convert_to, write_to},
      {"copy stop_gradient", "Identity", run_identity},
      {.ops = "copy_", .write = write_copy_in_place},
      // Files of other programs have it; reel writes initialisers.
      {.type = "Constant", .run = constant},
  };
  return table;
}

}  // namespace reel::io::onnx
