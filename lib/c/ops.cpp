#include <reel/no_record.h>
#include <reel/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "guard.h"
#include "handles.h"

namespace reel::detail {
namespace {

// An op that takes tensors only; the unused operands of `run` are undefined.
struct NamedOp {
  std::string_view name;
  std::size_t operands;
  Tensor (*run)(const Arg& a, const Arg& b, const Arg& c);
};

template <Tensor (*f)(const Arg&)>
constexpr NamedOp unary(std::string_view name) {
  return {name, 1, [](const Arg& x, const Arg&, const Arg&) { return f(x); }};
}

template <Tensor (*f)(const Arg&, const Arg&)>
constexpr NamedOp binary(std::string_view name) {
  return {name, 2, [](const Arg& a, const Arg& b, const Arg&) { return f(a, b); }};
}

template <Tensor (*f)(const Arg&, ReduceOptions)>
constexpr NamedOp reduction(std::string_view name) {
  return {name, 1, [](const Arg& x, const Arg&, const Arg&) { return f(x, {}); }};
}

constexpr std::array named_ops{
    unary<&abs>("abs"),
    binary<&add>("add"),
    NamedOp{"argmax", 1, [](const Arg& x, const Arg&, const Arg&) { return argmax(x, -1); }},
    NamedOp{"argmin", 1, [](const Arg& x, const Arg&, const Arg&) { return argmin(x, -1); }},
    unary<&ceil>("ceil"),
    NamedOp{"clamp", 3, [](const Arg& x, const Arg& low, const Arg& high) { return clamp(x, low, high); }},
    unary<&cos>("cos"),
    binary<&div>("div"),
    binary<&equal>("equal"),
    unary<&erf>("erf"),
    unary<&exp>("exp"),
    unary<&floor>("floor"),
    binary<&floor_divide>("floor_divide"),
    NamedOp{"gelu", 1, [](const Arg& x, const Arg&, const Arg&) { return gelu(x); }},
    binary<&greater>("greater"),
    binary<&greater_equal>("greater_equal"),
    unary<&isfinite>("isfinite"),
    unary<&isnan>("isnan"),
    binary<&less>("less"),
    binary<&less_equal>("less_equal"),
    unary<&log>("log"),
    unary<&log1p>("log1p"),
    NamedOp{"log_softmax", 1, [](const Arg& x, const Arg&, const Arg&) { return log_softmax(x); }},
    unary<&logical_not>("logical_not"),
    binary<&matmul>("matmul"),
    reduction<&max>("max"),
    binary<&maximum>("maximum"),
    reduction<&mean>("mean"),
    reduction<&min>("min"),
    binary<&minimum>("minimum"),
    binary<&mod>("mod"),
    binary<&mul>("mul"),
    unary<&neg>("neg"),
    binary<&not_equal>("not_equal"),
    binary<&pow>("pow"),
    reduction<&prod>("prod"),
    unary<&reciprocal>("reciprocal"),
    unary<&relu>("relu"),
    unary<&round>("round"),
    unary<&rsqrt>("rsqrt"),
    unary<&sigmoid>("sigmoid"),
    unary<&sign>("sign"),
    unary<&silu>("silu"),
    unary<&sin>("sin"),
    NamedOp{"softmax", 1, [](const Arg& x, const Arg&, const Arg&) { return softmax(x); }},
    NamedOp{"softplus", 1, [](const Arg& x, const Arg&, const Arg&) { return softplus(x); }},
    unary<&sqrt>("sqrt"),
    unary<&square>("square"),
    binary<&sub>("sub"),
    reduction<&sum>("sum"),
    unary<&tan>("tan"),
    unary<&tanh>("tanh"),
    NamedOp{"transpose", 1, [](const Arg& x, const Arg&, const Arg&) { return transpose(x); }},
    NamedOp{"where", 3, [](const Arg& condition, const Arg& a, const Arg& b) { return where(condition, a, b); }},
};
static_assert(std::ranges::is_sorted(named_ops, {}, &NamedOp::name));

const NamedOp& find_op(std::string_view name) {
  const auto* found = std::ranges::lower_bound(named_ops, name, {}, &NamedOp::name);
  if (found == named_ops.end() || found->name != name)
    refuse(REEL_ARGUMENT_ERROR, "there is no op '{}' in the C interface; reel_op_name lists those that there are",
           name);
  return *found;
}

}  // namespace
}  // namespace reel::detail

using namespace reel;
using namespace reel::detail;

reel_status reel_op_run(const char* name, const reel_tensor* const* inputs, size_t count, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    const NamedOp& op = find_op(given(name, "name"));
    if (count != op.operands)
      refuse(REEL_ARGUMENT_ERROR, "{} takes {} tensor{}, not {}", op.name, op.operands, op.operands == 1 ? "" : "s",
             count);
    given(inputs, "inputs");
    std::array<Tensor, 3> operands;
    for (std::size_t i = 0; i < count; ++i) operands[i] = tensor_of(inputs[i]);
    NoRecord pause;
    Location unknown;
    *result =
        handle_of(op.run(Arg(operands[0], unknown), Arg(operands[1], unknown), Arg(operands[2], unknown))).release();
  });
}

size_t reel_op_count() { return named_ops.size(); }

const char* reel_op_name(size_t index) { return index < named_ops.size() ? named_ops[index].name.data() : nullptr; }
