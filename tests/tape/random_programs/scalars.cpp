#include "scalars.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reel_test::programs {

namespace {

double value_of(Rule rule, double a, double b) {
  switch (rule) {
    case Rule::variable:
    case Rule::copy: return a;
    case Rule::add: return a + b;
    case Rule::sub: return a - b;
    case Rule::mul: return a * b;
    case Rule::div: return a / b;
    case Rule::neg: return -a;
    case Rule::square:
    case Rule::custom_constant: return a * a;
    case Rule::sin:
    case Rule::custom_input: return std::sin(a);
    case Rule::cos: return std::cos(a);
    case Rule::exp: return std::exp(a);
    case Rule::tanh: return std::tanh(a);
  }
  return 0;
}

// A bound on the error of y = f(a, b), however it is computed, to first order in u = 2⁻⁵³:
//
//   error(y) = |∂f/∂a| error(a) + |∂f/∂b| error(b) + 64 u |y|,
//
// where the last term is what f itself may be off by. 64 is more than any function's error in units of u, and than the
// number of terms of a sum whose order is free, but for the sums of whole tensors, which reel forms in pairs. A sum of
// n terms is off by at most (n − 1) u Σ|xᵢ| in any order. The error bound of each addition is therefore u (|a| + |b|)
// and not u |y|: along a chain of additions these are at least u Σ|xᵢ|, also where the terms cancel. A sine, cosine or
// tanh is off by u times its largest value where its argument is reduced, or where it is computed from exponentials.
double error_of(Rule rule, Scalar a, Scalar b, double y) {
  constexpr double rounding = 64 * 0x1p-53;
  switch (rule) {
    case Rule::variable:
    case Rule::copy:
    case Rule::neg: return a.error;
    case Rule::add:
    case Rule::sub: return a.error + b.error + rounding * (std::abs(a.value) + std::abs(b.value));
    case Rule::mul:
      return std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error + rounding * std::abs(y);
    case Rule::div: return (a.error + std::abs(y) * b.error) / std::abs(b.value) + rounding * std::abs(y);
    case Rule::square:
    case Rule::custom_constant: return (2 * std::abs(a.value) + a.error) * a.error + rounding * y;
    case Rule::sin:
    case Rule::cos:
    case Rule::tanh:
    case Rule::custom_input: return a.error + rounding;
    case Rule::exp: return y * (a.error + rounding);
  }
  return 0;
}

}  // namespace

Scalar Scalars::variable(Scalar value) {
  nodes_.push_back({Rule::variable, {}, {}, value.value, value.error});
  return {value.value, count() - 1, value.error};
}

Scalar Scalars::apply(Rule rule, Scalar a, Scalar b) {
  double value = value_of(rule, a.value, b.value), error = error_of(rule, a, b, value);
  if (constants_only || (a.node < 0 && b.node < 0)) return {value, -1, error};
  nodes_.push_back({rule, a, b, value, error});
  return {value, count() - 1, error};
}

Scalars::Adjoint& Scalars::touch(int node) {
  if (adjoints_.size() <= static_cast<std::size_t>(node)) adjoints_.resize(static_cast<std::size_t>(count()) + 1);
  Adjoint& adjoint = adjoints_[static_cast<std::size_t>(node)];
  if (!adjoint.defined && !adjoint.kept) touched_.push_back(node);
  return adjoint;
}

void Scalars::keep(int node) { touch(node).kept = true; }

void Scalars::add_adjoint(int node, Scalar adjoint) {
  Adjoint& sum = touch(node);
  sum.sum = sum.defined ? apply(Rule::add, sum.sum, adjoint) : adjoint;
  sum.defined = true;
}

void Scalars::pull_back(int begin, int end) {
  for (int i = end; i-- > begin;) {
    if (static_cast<std::size_t>(i) >= adjoints_.size()) continue;
    const Adjoint adjoint = adjoints_[static_cast<std::size_t>(i)];
    if (adjoint.defined && !adjoint.kept) pass_on(i, adjoint.sum);
  }
}

void Scalars::pass_on(int number, Scalar d) {
  const Node node = nodes_[static_cast<std::size_t>(number)];
  const Scalar a = node.a, b = node.b, self{node.value, number, node.error};
  switch (node.rule) {
    case Rule::variable: break;
    case Rule::copy: give(a, d); break;
    case Rule::add:
      give(a, d);
      give(b, d);
      break;
    case Rule::sub:
      give(a, d);
      if (b.node >= 0) give(b, apply(Rule::neg, d));
      break;
    case Rule::mul:
      if (a.node >= 0) give(a, apply(Rule::mul, d, b));
      if (b.node >= 0) give(b, apply(Rule::mul, d, a));
      break;
    case Rule::div: {
      Scalar quotient = apply(Rule::div, d, b);
      give(a, quotient);
      if (b.node >= 0) give(b, apply(Rule::neg, apply(Rule::mul, quotient, self)));
      break;
    }
    case Rule::neg: give(a, apply(Rule::neg, d)); break;
    case Rule::square: give(a, apply(Rule::mul, apply(Rule::mul, d, a), {2})); break;
    case Rule::sin: give(a, apply(Rule::mul, d, apply(Rule::cos, a))); break;
    case Rule::cos: give(a, apply(Rule::neg, apply(Rule::mul, d, apply(Rule::sin, a)))); break;
    case Rule::exp: give(a, apply(Rule::mul, d, self)); break;
    case Rule::tanh: give(a, apply(Rule::mul, d, apply(Rule::sub, {1}, apply(Rule::square, self)))); break;
    case Rule::custom_constant: give(a, apply(Rule::mul, d, {3})); break;
    case Rule::custom_input: give(a, apply(Rule::mul, apply(Rule::mul, d, a), {0.5})); break;
  }
}

Scalar Scalars::adjoint_of(int node) const {
  if (static_cast<std::size_t>(node) >= adjoints_.size()) return {};
  const Adjoint& adjoint = adjoints_[static_cast<std::size_t>(node)];
  return adjoint.defined ? adjoint.sum : Scalar{};
}

void Scalars::clear_adjoints() {
  for (int node : touched_) adjoints_[static_cast<std::size_t>(node)] = {};
  touched_.clear();
}

std::vector<int> Scalars::slots_behind(const std::vector<Scalar>& values) {
  ++visit_;
  std::vector<int> found, left;
  auto push = [&](Scalar operand) {
    if (operand.node >= 0) left.push_back(operand.node);
  };
  for (const Scalar& value : values) push(value);
  while (!left.empty()) {
    Node& node = nodes_[static_cast<std::size_t>(left.back())];
    left.pop_back();
    if (std::exchange(node.visit, visit_) == visit_) continue;
    if (node.slot) {
      if (std::find(found.begin(), found.end(), node.slot) == found.end()) found.push_back(node.slot);
    } else {
      push(node.a);
      push(node.b);
    }
  }
  return found;
}

}  // namespace reel_test::programs
