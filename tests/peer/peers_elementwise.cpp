#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

Peer unary(at::Tensor (*f)(const at::Tensor&)) {
  return [f](Tensors x, Given) { return f(x[0]); };
}
Peer binary(at::Tensor (*f)(const at::Tensor&, const at::Tensor&)) {
  return [f](Tensors x, Given) { return f(x[0], x[1]); };
}

}  // namespace

void add_elementwise_peers(Peers& peers) {
  peers["neg"] = unary(at::neg);
  peers["exp"] = unary(at::exp);
  peers["log"] = unary(at::log);
  peers["sqrt"] = unary(at::sqrt);
  peers["square"] = unary(at::square);
  peers["tanh"] = unary(at::tanh);
  peers["sigmoid"] = unary(at::sigmoid);
  peers["relu"] = unary(at::relu);
  peers["copy"] = [](Tensors x, Given) { return x[0].clone(); };
  peers["contiguous"] = [](Tensors x, Given) { return x[0].contiguous(); };
  peers["to"] = [](Tensors x, Given given) {
    auto dtype = static_cast<reel::DType>(given.integer("dtype"));
    return x[0].to(dtype == reel::f64 ? at::kDouble : dtype == reel::i64 ? at::kLong : at::kBool);
  };
  peers["add"] = [](Tensors x, Given) { return x[0] + x[1]; };
  peers["sub"] = [](Tensors x, Given) { return x[0] - x[1]; };
  peers["mul"] = binary(at::mul);
  peers["div"] = binary(at::div);
  peers["pow"] = binary(at::pow);
  peers["equal"] = binary(at::eq);
  peers["not_equal"] = binary(at::ne);
  peers["less"] = binary(at::lt);
  peers["less_equal"] = binary(at::le);
  peers["greater"] = binary(at::gt);
  peers["greater_equal"] = binary(at::ge);
  peers["abs"] = unary(at::abs);
  peers["sign"] = unary(at::sign);
  peers["floor"] = unary(at::floor);
  peers["ceil"] = unary(at::ceil);
  peers["round"] = unary(at::round);
  peers["trunc"] = unary(at::trunc);
  peers["reciprocal"] = unary(at::reciprocal);
  peers["rsqrt"] = unary(at::rsqrt);
  peers["expm1"] = unary(at::expm1);
  peers["log1p"] = unary(at::log1p);
  peers["log2"] = unary(at::log2);
  peers["sin"] = unary(at::sin);
  peers["cos"] = unary(at::cos);
  peers["tan"] = unary(at::tan);
  peers["asin"] = unary(at::asin);
  peers["acos"] = unary(at::acos);
  peers["atan"] = unary(at::atan);
  peers["sinh"] = unary(at::sinh);
  peers["cosh"] = unary(at::cosh);
  peers["erf"] = unary(at::erf);
  peers["erfinv"] = unary(at::erfinv);
  peers["lgamma"] = unary(at::lgamma);
  peers["digamma"] = unary(at::digamma);
  peers["logical_not"] = unary(at::logical_not);
  peers["isnan"] = unary(at::isnan);
  peers["isinf"] = unary(at::isinf);
  peers["isfinite"] = unary(at::isfinite);
  peers["maximum"] = binary(at::maximum);
  peers["minimum"] = binary(at::minimum);
  peers["atan2"] = binary(at::atan2);
  // libtorch's takes no integers.
  peers["logaddexp"] = [](Tensors x, Given) {
    auto floating = [](const at::Tensor& y) { return y.is_floating_point() ? y : y.to(at::kFloat); };
    return at::logaddexp(floating(x[0]), floating(x[1]));
  };
  peers["logical_and"] = binary(at::logical_and);
  peers["logical_or"] = binary(at::logical_or);
  peers["logical_xor"] = binary(at::logical_xor);
  peers["exp2"] = unary(at::exp2);
  peers["log10"] = unary(at::log10);
  peers["asinh"] = unary(at::asinh);
  peers["acosh"] = [](Tensors x, Given) { return at::acosh(x[0] * 4); };
  peers["atanh"] = unary(at::atanh);
  peers["logit"] = [](Tensors x, Given) { return at::logit(x[0] * 0.25); };
  peers["sinc"] = unary(at::sinc);
  peers["erfc"] = unary(at::erfc);
  peers["i0"] = unary(at::i0);
  peers["i1"] = unary(at::special_i1);
  peers["nan_to_num"] = [](Tensors x, Given) { return at::nan_to_num(x[0]); };
  peers["fmod"] = [](Tensors x, Given) { return at::fmod(x[0], x[1]); };
  peers["xlogy"] = [](Tensors x, Given) { return at::xlogy(x[0], x[1]); };
  peers["bitwise_not"] = unary(at::bitwise_not);
  peers["bitwise_and"] = binary(at::bitwise_and);
  peers["bitwise_or"] = binary(at::bitwise_or);
  peers["bitwise_xor"] = binary(at::bitwise_xor);
  peers["isclose"] = [](Tensors x, Given) { return at::isclose(x[0], x[1]); };
  peers["floor_divide"] = [](Tensors x, Given) { return at::div(x[0], x[1], "floor"); };
  peers["mod"] = [](Tensors x, Given) { return at::remainder(x[0], x[1]); };
  peers["polygamma"] = [](Tensors x, Given with) { return at::polygamma(with.integer("order"), x[0]); };
  peers["lerp"] = [](Tensors x, Given) { return at::lerp(x[0], x[1], x[2]); };
  peers["clamp"] = [](Tensors x, Given with) {
    if (with.has("low")) return at::clamp(x[0], with.number("low"), with.number("high"));
    return at::clamp(x[0], x[1], x[2]);
  };
  peers["where"] = [](Tensors x, Given) { return at::where(x[0], x[1], x[2]); };
}

}  // namespace reel_test
