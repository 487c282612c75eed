#include <cmath>
#include <numbers>

#include "../../../ops/elementwise/attributes.h"
#include "../model_tensor.h"
#include "operators.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

/// A name of ONNX as a template argument.
template <std::size_t size>
struct Type {
  char text[size];
  constexpr Type(const char (&name)[size]) {
    for (std::size_t i = 0; i < size; ++i) text[i] = name[i];
  }
};

/// An operator of ONNX with the op's operands.
template <Type type>
void same(Writer& w) {
  Names inputs;
  for (std::size_t i = 0; i < w.input_count(); ++i) inputs.push_back(w.in(i));
  w.result(w.node(type.text, inputs));
}

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
void write_where(Writer& w) { w.result(w.node("Where", {w.in(0), w.in(1), w.in(2)})); }
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
  auto [alpha, scale] = numbers_of(w);
  std::string x = w.in(0), below = e.sub(w.node("Exp", {w.node("Min", {x, e.number(0)})}), e.number(1));
  std::string y = e.where(w.node("Greater", {x, e.number(0)}), x, e.mul(e.number(alpha), below));
  w.result(scale == 1 ? y : e.mul(y, e.number(scale)));
}
void write_softplus(Writer& w) {
  Expression e = of(w);
  auto [beta, threshold] = numbers_of(w);
  std::string x = w.in(0), z = e.mul(x, e.number(beta));
  std::string decay = w.node("Exp", {w.node("Neg", {w.node("Abs", {z})})});
  std::string y = e.add(w.node("Max", {z, e.number(0)}), w.node("Log", {e.add(e.number(1), decay)}));
  w.result(e.where(w.node("Greater", {z, e.number(threshold)}), x, e.div(y, e.number(beta))));
}
void write_hardtanh(Writer& w) {
  Expression e = of(w);
  auto [low, high] = numbers_of(w);
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

}  // namespace

std::span<const Operator> elementwise_operators() {
  static constexpr Operator table[] = {
      {"neg", same<"Neg">},
      {"abs", same<"Abs">},
      {"sign", same<"Sign">},
      {"square", write_square},
      {"relu", write_relu},
      {"floor", write_rounding<'f'>},
      {"ceil", write_rounding<'c'>},
      {"round", write_rounding<'r'>},
      {"trunc", write_trunc},
      {"reciprocal", same<"Reciprocal">},
      {"sqrt", same<"Sqrt">},
      {"rsqrt", write_rsqrt},
      {"exp", same<"Exp">},
      {"expm1", write_expm1},
      {"log", same<"Log">},
      {"log1p", write_log1p},
      {"log2", write_log2},
      {"log10", write_log10},
      {"exp2", write_exp2},
      {"logit", write_logit},
      {"sin", same<"Sin">},
      {"cos", same<"Cos">},
      {"tan", same<"Tan">},
      {"asin", same<"Asin">},
      {"acos", same<"Acos">},
      {"atan", same<"Atan">},
      {"atan2", write_atan2},
      {"sinh", same<"Sinh">},
      {"cosh", same<"Cosh">},
      {"asinh", same<"Asinh">},
      {"acosh", same<"Acosh">},
      {"atanh", same<"Atanh">},
      {"tanh", same<"Tanh">},
      {"sigmoid", same<"Sigmoid">},
      {"sinc", write_sinc},
      {"erf", same<"Erf">},
      {"erfc", write_erfc},
      {"isnan", write_test<false>},
      {"isinf", write_test<true>},
      {"isfinite", write_isfinite},
      {"logical_and", write_logical<'&'>},
      {"logical_or", write_logical<'|'>},
      {"logical_xor", write_logical<'^'>},
      {"logical_not", write_not},
      {"bitwise_and", write_bitwise<'&'>},
      {"bitwise_or", write_bitwise<'|'>},
      {"bitwise_xor", write_bitwise<'^'>},
      {"add", write_add},
      {"sub", same<"Sub">},
      {"mul", write_mul},
      {"div", same<"Div">},
      {"pow", same<"Pow">},
      {"floor_divide", write_floor_divide},
      {"mod", write_mod},
      {"logaddexp", write_logaddexp},
      {"equal", write_comparison<'='>},
      {"not_equal", write_comparison<'!'>},
      {"less", write_comparison<'<'>},
      {"less_equal", write_comparison<'l'>},
      {"greater", write_comparison<'>'>},
      {"greater_equal", write_comparison<'g'>},
      {"maximum", write_extreme<true>},
      {"minimum", write_extreme<false>},
      {"clamp", write_clamp},
      {"where", write_where},
      {"lerp", write_lerp},
      {"leaky_relu", write_leaky_relu},
      {"gelu", write_gelu},
      {"silu", write_silu},
      {"elu", write_elu},
      {"selu", write_elu},
      {"softplus", write_softplus},
      {"hardtanh", write_hardtanh},
      {"mish", write_mish},
      {"hardswish", write_hardswish},
      {"softsign", write_softsign},
      {"to", write_to},
      {"copy", write_identity},
      {"stop_gradient", write_identity},
      {"copy_", write_copy_in_place},
  };
  return table;
}

}  // namespace reel::io::onnx
