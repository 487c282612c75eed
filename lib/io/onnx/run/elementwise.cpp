#include <reel/ops.h>

#include "../../../ops/if_needed.h"
#include "../model_tensor.h"
#include "run.h"

namespace reel::io::onnx {

using namespace detail;

namespace {

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
Results same(const NodeCall& c) { return {c.in(0)}; }
Results leaky(const NodeCall& c) { return {leaky_relu(c.first(), {.slope = c.number("alpha", 0.01)})}; }
Results negated(const NodeCall& c) { return {neg(c.first())}; }
Results constant(const NodeCall& c) {
  for (const OnnxAttribute& attribute : c.node().attributes)
    if (attribute.kind == OnnxAttribute::Kind::tensor) return {tensor_from(*attribute.tensor, model_name, c.where())};
  c.refuse("it has no tensor");
}

}  // namespace

std::span<const Runner> elementwise_runners() {
  static constexpr Runner table[] = {
      {"Abs", unary<reel::abs>},
      {"Acos", unary<reel::acos>},
      {"Acosh", unary<reel::acosh>},
      {"Add", binary<reel::add>},
      {"And", binary<reel::logical_and>},
      {"Asin", unary<reel::asin>},
      {"Asinh", unary<reel::asinh>},
      {"Atan", unary<reel::atan>},
      {"Atanh", unary<reel::atanh>},
      {"Cast", convert_to},
      {"Ceil", unary<reel::ceil>},
      {"Constant", constant},
      {"Cos", unary<reel::cos>},
      {"Cosh", unary<reel::cosh>},
      {"Div", divide},
      {"Equal", binary<reel::equal>},
      {"Erf", unary<reel::erf>},
      {"Exp", unary<reel::exp>},
      {"Floor", unary<reel::floor>},
      {"Greater", binary<reel::greater>},
      {"GreaterOrEqual", binary<reel::greater_equal>},
      {"Identity", same},
      {"IsInf", unary<reel::isinf>},
      {"IsNaN", unary<reel::isnan>},
      {"LeakyRelu", leaky},
      {"Less", binary<reel::less>},
      {"LessOrEqual", binary<reel::less_equal>},
      {"Log", unary<reel::log>},
      {"Max", of_all<reel::maximum>},
      {"Min", of_all<reel::minimum>},
      {"Mod", modulo},
      {"Mul", binary<reel::mul>},
      {"Neg", negated},
      {"Not", unary<reel::logical_not>},
      {"Or", binary<reel::logical_or>},
      {"Pow", binary<reel::pow>},
      {"Reciprocal", unary<reel::reciprocal>},
      {"Relu", unary<reel::relu>},
      {"Round", unary<reel::round>},
      {"Sigmoid", unary<reel::sigmoid>},
      {"Sign", unary<reel::sign>},
      {"Sin", unary<reel::sin>},
      {"Sinh", unary<reel::sinh>},
      {"Sqrt", unary<reel::sqrt>},
      {"Sub", binary<reel::sub>},
      {"Tan", unary<reel::tan>},
      {"Tanh", unary<reel::tanh>},
      {"Where", choose},
      {"Xor", binary<reel::logical_xor>},
  };
  return table;
}

}  // namespace reel::io::onnx
