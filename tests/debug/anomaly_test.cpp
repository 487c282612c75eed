#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/context.h"
#include "dispatch/invoke.h"

using namespace reel;
using debug::detect_anomaly;
using namespace reel_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// The anomaly in the exception that f throws; empty if f throws nothing.
template <class F>
std::optional<debug::Anomaly> anomaly_of(F f) {
  try {
    f();
  } catch (const AnomalyError& error) {
    return error.anomaly();
  }
  return {};
}

std::string location(int line) { return "anomaly_test.cpp:" + std::to_string(line); }

}  // namespace

TEST_CASE("statistics count what a tensor holds") {
  Tensor x = tensor({0.0, -2.5, 40.0, not_a_number, infinity, 1e-3, -infinity, 2e-31, 1e30, not_a_number});
  debug::TensorStatistics found = debug::statistics(x);
  CHECK(found.shape == Shape{10});
  CHECK(found.dtype == f64);
  CHECK(found.min == -2.5);
  CHECK(found.max == 1e30);
  CHECK(found.zeros == 1);
  CHECK(found.nans == 2);
  CHECK(found.infinities == 2);
  CHECK(found.first_nan == 3);
  CHECK(found.first_infinity == 4);
  CHECK(to_string(found) ==
        "(10,) f64, min -2.5, max 1e+30, 2 NaN, 2 Inf, |x|: 0: 1, <1e-30: 1, 1e-3…1e0: 1, 1e0…1e3: 2, ≥1e30: 1");
}

TEST_CASE("statistics follow strides, and take every dtype") {
  Tensor x = transpose(tensor({{1.0, 2.0, 3.0}, {4.0, not_a_number, 6.0}}), 0, 1);
  CHECK(debug::statistics(x).first_nan == 3);
  CHECK(debug::statistics(x).max == 6);
  for (DType dtype : {bf16, f16, f32, f64}) {
    debug::TensorStatistics found = debug::statistics(to(tensor({-1.5, not_a_number, 0.25, infinity}), dtype));
    CAPTURE(name_of(dtype));
    CHECK(found.dtype == dtype);
    CHECK(found.min == -1.5);
    CHECK(found.max == 0.25);
    CHECK(found.nans == 1);
    CHECK(found.infinities == 1);
  }
  CHECK(to_string(debug::statistics(tensor({3, 0, -7}))) == "(3,) i32, min -7, max 3, |x|: 0: 1, 1e0…1e3: 2");
  CHECK(to_string(debug::statistics(zeros({2, 0}))) == "(2, 0) f32, no elements");
  CHECK(to_string(debug::statistics(full({2}, not_a_number))) == "(2,) f32, 2 NaN, 0 Inf");
  CHECK(to_string(debug::statistics(tensor({true, false}))) == "(2,) bool, min 0, max 1, |x|: 0: 1, 1e0…1e3: 1");
}

TEST_CASE("statistics of an undefined tensor are refused") {
  CHECK_THAT(error_of<Error>([] { static_cast<void>(debug::statistics(Tensor{})); }),
             contains("statistics: an operand is an undefined tensor") && contains("anomaly_test.cpp:"));
}

TEST_CASE("the first op that gives NaN or Inf is named, with its caller and what went in") {
  auto scope = detect_anomaly();
  int made = __LINE__ + 1;
  Tensor x = tensor({{1.0f, 0.0f, 0.001f}, {-2.0f, 3.0f, -1.0f}});
  Tensor y = x * 2;
  int line = __LINE__ + 1;
  std::string text = error_of<AnomalyError>([&] { Tensor z = log(x); });
  CHECK(text ==
        "log: gave 2 NaN and 1 Inf among the 6 elements of its result (2, 3) f32, the first at [0, 1]; its inputs "
        "held finite numbers only; at tests/debug/" +
            location(line) + "\n  input 0, made at tests/debug/" + location(made) +
            ": (2, 3) f32, min -2, max 3, 0 NaN, 0 Inf, |x|: 0: 1, 1e-3…1e0: 1, 1e0…1e3: 4");
  debug::Anomaly found = *anomaly_of([&] { log(x); });
  CHECK(found.op == "log");
  CHECK(found.gradient_of.empty());
  CHECK(found.output_index == 0);
  CHECK(found.output.nans == 2);
  CHECK(found.output.infinities == 1);
  REQUIRE(found.inputs.size() == 1);
  CHECK(found.inputs[0].index == 0);
  CHECK(found.inputs[0].made_at.line == made);
  CHECK_FALSE(found.inputs[0].overwritten);
  CHECK(found.inputs[0].statistics.min == -2);
}

TEST_CASE("an AnomalyError knows its place, and is an Error") {
  auto scope = detect_anomaly();
  Tensor x = zeros({1});
  int line = __LINE__ + 2;
  try {
    Tensor y = 1 / x;
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.where().line == line);
  }
}

TEST_CASE("in a backward the op is named whose gradient went wrong, with the line that called it") {
  Tensor w = tensor({4.0f, 0.0f, 9.0f}).requires_grad();
  Tensor untouched = ones({2}).requires_grad();
  untouched.set_grad(full({2}, 5));
  Tape tape;
  auto scope = detect_anomaly();
  int line = __LINE__ + 1;
  Tensor root = sqrt(w);
  Tensor loss = sum(root) + sum(untouched);
  std::optional<debug::Anomaly> found;
  std::string text;
  try {
    tape.backward(loss);
  } catch (const AnomalyError& error) {
    found = error.anomaly();
    text = error.what();
    CHECK(error.where().line == line);
  }
  REQUIRE(found);
  CHECK(found->gradient_of == "sqrt");
  CHECK(found->output.infinities == 1);
  CHECK(found->output.first_infinity == 1);
  CHECK_THAT(text,
             contains(": in the gradient of sqrt, gave 1 Inf among the 3 elements of its result (3,) f32, the first "
                      "at [1]") &&
                 contains("; at tests/debug/" + location(line) + "\n  input 0"));
  // No gradient has been committed.
  CHECK_FALSE(w.grad().defined());
  CHECK(untouched.grad().to_vector<float>() == std::vector<float>{5, 5});
}

TEST_CASE("what follows an anomaly works as before it") {
  Tensor w = tensor({1.0f, 0.0f}).requires_grad();
  detail::Context& context = detail::context();
  std::uint32_t flags_before = context.flags;
  int heard = 0;
  {
    debug::Listen listen([&](const debug::OpEvent&) { ++heard; });
    Tape tape({.persistent = true});
    std::uint32_t flags_inside = context.flags;
    Tensor loss = sum(square(w)), bad = sum(sqrt(w));
    {
      auto scope = detect_anomaly();
      CHECK_THROWS_AS(log(w), AnomalyError);
      CHECK_THROWS_AS(tape.backward(bad), AnomalyError);
      CHECK_THROWS_AS(tape.gradient(bad, w), AnomalyError);
      CallerScope caller(Location::here());
      CHECK_THROWS_AS(log(w), AnomalyError);
    }
    CHECK(context.flags == flags_inside);
    CHECK(context.differentiating == nullptr);
    CHECK(is_recording());
    CHECK_FALSE(w.grad().defined());
    // The tape still differentiates.
    CHECK(tape.gradient(loss, w).to_vector<float>() == std::vector<float>{2, 0});
    int before = heard;
    Tensor y = w + w;
    CHECK(heard == before + 1);
  }
  CHECK(context.flags == flags_before);
  CHECK(context.listener == nullptr);
  {
    // So does a tape that is cleared when its backward fails.
    Tape tape;
    auto scope = detect_anomaly();
    Tensor bad = sum(sqrt(w));
    CHECK_THROWS_AS(tape.backward(bad), AnomalyError);
    CHECK(tape.size() == 0);
    tape.backward(sum(square(w)));
    CHECK(w.grad().to_vector<float>() == std::vector<float>{2, 0});
  }
  Tensor silent = log(w);
  CHECK(std::isinf(silent.to_vector<float>()[1]));
}

TEST_CASE("gradients that overflow when they are added up are found") {
  Tensor w = full({2}, 1, {.dtype = f32}).requires_grad();
  Tape tape;
  Tensor loss = sum(w * 3e38f) + sum(w * 3e38f);
  auto scope = detect_anomaly();
  debug::Anomaly found = *anomaly_of([&] { tape.backward(loss); });
  CHECK_FALSE(found.gradient_of.empty());
  CHECK(found.output.infinities == 2);
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("gradients of parts that overflow when they are added up are found") {
  const Tensor large = full({2}, 3e38, {.dtype = f32});
  for (bool by_index : {false, true}) {
    Tensor x = full({4}, 1e-30, {.dtype = f32}).requires_grad();
    Tape tape;
    Tensor loss = by_index ? sum(x(slice(0, 2)) * large) + sum(x(slice(1, 3)) * large)
                           : sum(slice(x, 0, 0, 2) * large) + sum(slice(x, 0, 1, 3) * large);
    auto scope = detect_anomaly();
    debug::Anomaly found = *anomaly_of([&] { tape.backward(loss); });
    CHECK(found.output.infinities == 1);
    CHECK_FALSE(x.grad().defined());
  }
}

TEST_CASE("what goes into a gradient that is computed is shown as it was") {
  Tensor a = full({4}, 0, {.dtype = f32}).requires_grad(), b = full({4}, 0, {.dtype = f32}).requires_grad();
  const Tensor seed = full({4}, std::numeric_limits<double>::infinity(), {.dtype = f32});
  Tape tape;
  Tensor product = a * b;
  auto scope = detect_anomaly({.infinities = false});
  debug::Anomaly found = *anomaly_of([&] { tape.gradient(product * 1.0, {a, b}, {.seed = seed}); });
  CHECK(found.output.nans == 4);
  REQUIRE_FALSE(found.inputs.empty());
  CHECK(found.inputs[0].statistics.infinities == 4);
}

TEST_CASE("a leaf or a seed that holds NaN is seen by the first op that computes from it") {
  auto scope = detect_anomaly();
  int made = __LINE__ + 1;
  Tensor leaf = tensor({1.0f, std::numeric_limits<float>::quiet_NaN()}).requires_grad();
  Tensor view = reshape(leaf, {2, 1});
  std::string text = error_of<AnomalyError>([&] { Tensor y = ones({2}) + leaf; });
  CHECK_THAT(text, contains("add: gave 1 NaN") &&
                       contains("; its input 1, made at tests/debug/" + location(made) + ", already held 1 NaN; at"));
  Tensor w = ones({2}).requires_grad();
  Tape tape;
  Tensor y = square(w);
  debug::Anomaly found = *anomaly_of([&] { tape.backward(y, {.seed = stop_gradient(leaf)}); });
  CHECK(found.gradient_of == "square");
  bool input_shows_it = false;
  for (const debug::Anomaly::Input& input : found.inputs) input_shows_it |= input.statistics.nans == 1;
  CHECK(input_shows_it);
}

TEST_CASE("infinities are let through on request, NaN is not") {
  auto scope = detect_anomaly({.infinities = false});
  Tensor masked = where(tensor({true, false}), zeros({2}), -infinity);
  CHECK(softmax(masked).to_vector<float>() == std::vector<float>{1, 0});
  std::string text = error_of<AnomalyError>([&] { Tensor y = masked - masked; });
  CHECK_THAT(text,
             contains("sub: gave 1 NaN among the 2 elements of its result (2,) f32, the first at [1]; its inputs held "
                      "no NaN"));
  auto strict = detect_anomaly();
  CHECK_THROWS_AS(masked * -2, AnomalyError);
}

TEST_CASE("a mask of −∞ is no anomaly where an operand has it, and any other infinity is one") {
  Tensor x = randn({2, 3}), mask = tensor({{true, false, true}, {true, true, false}});
  auto scope = detect_anomaly();
  Tensor masked = masked_fill(x, logical_not(mask), -infinity);
  CHECK(sum(softmax(2 * masked + 1, 1)).item() == Approx(2));
  CHECK_NOTHROW(log_softmax(masked, 1));
  CHECK_NOTHROW(max(masked, 1));
  nn::MultiHeadAttention attention(4, 2);
  CHECK_NOTHROW(attention(randn({1, 3, 4}), {.causal = true}));
  CHECK_THROWS_AS(-masked, AnomalyError);
  CHECK_THROWS_AS(log(zeros({2})), AnomalyError);
  CHECK_THROWS_AS(masked - masked, AnomalyError);
}

TEST_CASE("a mask of −∞ is no anomaly in the gradients of sums of exponentials, and is one in those of products") {
  Tensor scores = randn({2, 3}).requires_grad(), w = ones({3}).requires_grad();
  Tensor masked_out = tensor({{true, false, false}, {false, true, true}});
  auto scope = detect_anomaly();
  std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> functions{
      {"logsumexp", [](const Tensor& x) { return logsumexp(x, 1); }},
      {"logaddexp", [](const Tensor& x) { return logaddexp(x, 0) + logaddexp(1, x); }},
      {"logaddexp of masks", [](const Tensor& x) { return exp(logaddexp(x, x)); }},
      {"logcumsumexp", [](const Tensor& x) { return exp(logcumsumexp(x, 1)); }}};
  for (const auto& [name, f] : functions) {
    INFO(name);
    Tape outer;
    Tape tape;
    Tensor y = sum(f(masked_fill(scores, masked_out, -infinity)));
    Tensor gradient = tape.gradient(y, scores), second = outer.gradient(sum(square(gradient)), scores);
    for (const Tensor& found : {gradient, second}) {
      CHECK(all(isfinite(found)).item() == 1);
      CHECK(max(abs(masked_fill(found, !masked_out, 0))).item() == 0);
    }
  }
  Tape tape;
  Tensor y = sum(exp(masked_fill(scores, masked_out, -infinity) * w));
  debug::Anomaly found = *anomaly_of([&] { tape.gradient(y, w); });
  CHECK(found.gradient_of == "mul");
}

TEST_CASE("what tensors are created with is not looked at, nor are views, integers and bools") {
  auto scope = detect_anomaly();
  Tensor x = full({4, 4}, not_a_number), zero = zeros({4});
  Tensor ones_like_x = ones_like(x);
  Tensor view = x(0);
  Tensor transposed = transpose(reshape(x, {2, 8}), 0, 1), stretched = expand(view, {3, 4});
  std::vector<Tensor> parts = split(x, 2);
  CHECK(stop_gradient(x).numel() == 16);
  CHECK(isnan(x).dtype() == boolean);
  CHECK(argmax(x, 0).dtype() == i64);
  CHECK_NOTHROW(to(full({2}, 300), u8));
}

TEST_CASE("ops in place are looked at, and so is a part that is assigned") {
  auto scope = detect_anomaly();
  Tensor x = full({3}, 3e38f), y = full({3}, 3e38f);
  debug::Anomaly found = *anomaly_of([&] { add_(x, y); });
  CHECK(found.op == "add_");
  REQUIRE(found.inputs.size() == 2);
  CHECK(found.inputs[0].overwritten);
  CHECK_FALSE(found.inputs[1].overwritten);
  CHECK_THAT(error_of<AnomalyError>([&] { add_(x, y); }), contains("overwritten by the op: (3,) f32"));
  CHECK_THROWS_AS(copy_(x, full({3}, not_a_number)), AnomalyError);

  // Only the written elements are checked.
  Tensor rows = full({2, 3}, not_a_number);
  CHECK_NOTHROW(rows(0) = ones({3}));
  CHECK_THROWS_AS(rows(1) = full({3}, infinity), AnomalyError);
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  Tensor table = full({2, 3}, not_a_number);
  CHECK_NOTHROW(table(0) = w * 2);
  CHECK_THROWS_AS(table(1) = full({3}, not_a_number), AnomalyError);
}

TEST_CASE("all floating dtypes and strides are looked at") {
  auto scope = detect_anomaly();
  for (DType dtype : {bf16, f16, f32, f64}) {
    CAPTURE(name_of(dtype));
    for (std::int64_t size : {1, 7, 64, 1000, 300'000}) {
      Tensor fine = full({size}, 2, {.dtype = dtype});
      CHECK_NOTHROW(fine * 3);
      // One bad element, anywhere.
      for (std::int64_t bad : {std::int64_t{0}, size / 2, size - 1}) {
        Tensor place = to(one_hot(tensor({bad}), size)(0), dtype);
        debug::Anomaly found = *anomaly_of([&] { div(1 - place, 1 - place); });
        CHECK(found.output.nans == 1);
        CHECK(found.output.first_nan == bad);
      }
    }
    // A view in place, with strides.
    Tensor grid = ones({6, 5}, {.dtype = dtype});
    Tensor column = grid(ellipsis, 2);
    CHECK_NOTHROW(mul_(column, 2));
    debug::Anomaly found = *anomaly_of([&] { div_(column, 0); });
    CHECK(found.output.infinities == 6);
  }
}

TEST_CASE(
    "of an op with several outputs the one that is wrong is named; what only its gradient reads is not looked at") {
  auto scope = detect_anomaly();
  auto [values, places] = topk(tensor({3.0f, 1.0f, 2.0f}), 2);
  CHECK(values.numel() == 2);
  Tensor state = full({1, 2}, not_a_number), x = ones({1, 3});
  nn::LSTMCell cell(3, 2);
  debug::Anomaly found = *anomaly_of([&] { cell(x, {zeros({1, 2}), state}); });
  CHECK(found.output.nans == 2);
  CHECK_THAT(error_of<AnomalyError>([&] { cell(x, {zeros({1, 2}), state}); }), contains("of its output "));
  // Its alphas are logarithms, also of zeros.
  Tensor logs = log_softmax(randn({5, 1, 4}), 2).requires_grad();
  Tape tape;
  Tensor loss = ctc_loss(logs, tensor({{1, 2}}), tensor({5}), tensor({2}));
  CHECK_NOTHROW(tape.backward(sum(loss)));
}

TEST_CASE("an anomaly is found through other scopes, whichever is inside") {
  Tensor zero = zeros({2});
  std::vector<std::string> heard;
  auto listener = [&](const debug::OpEvent& event) { heard.emplace_back(event.op); };
  {
    auto scope = detect_anomaly();
    debug::Listen listen(listener);
    CHECK_THROWS_AS(log(zero), AnomalyError);
    CHECK_NOTHROW(exp(zero));
  }
  CHECK(heard == std::vector<std::string>{"log", "exp"});
  heard.clear();
  {
    debug::Listen listen(listener);
    auto scope = detect_anomaly();
    CHECK_THROWS_AS(log(zero), AnomalyError);
    CHECK_NOTHROW(exp(zero));
  }
  CHECK(heard == std::vector<std::string>{"log", "exp"});
  // The ops that a listener runs are not checked.
  auto scope = detect_anomaly();
  debug::Listen listen([&](const debug::OpEvent&) { Tensor mine = log(zero); });
  CHECK_NOTHROW(exp(zero));
}

namespace {

// An interceptor that runs every op at once.
class PlainInterceptor : public detail::Interceptor {
 public:
  void run(detail::Call& call) override {
    detail::run_and_record(call);
    ++ops;
  }
  int ops = 0;
};

}  // namespace

TEST_CASE("an op that an interceptor has run is looked at when the interceptor returns") {
  PlainInterceptor interceptor;
  detail::Context& context = detail::context();
  Tensor zero = zeros({2});
  {
    auto scope = detect_anomaly();
    context.interceptor = &interceptor;
    CHECK_THROWS_AS(log(zero), AnomalyError);
    CHECK_NOTHROW(exp(zero));
    context.interceptor = nullptr;
  }
  CHECK(interceptor.ops == 2);
  CHECK_FALSE(context.has(detail::Context::intercepted));
}

TEST_CASE("a second derivative is looked at too, and names the op whose gradient it is in") {
  Tensor x = zeros({1}, {.dtype = f64});
  Tape outer;
  outer.watch(x);
  Tensor slope;
  auto cube = [](const Tensor& t) { return pow(t, 1.5); };
  {
    Tape inner;
    inner.watch(x);
    slope = inner.gradient(sum(cube(x)), x);
  }
  auto scope = detect_anomaly();
  std::optional<debug::Anomaly> found = anomaly_of([&] { static_cast<void>(outer.gradient(sum(slope), x)); });
  REQUIRE(found);
  CHECK_FALSE(found->gradient_of.empty());
  CHECK(found->output.infinities + found->output.nans == 1);
}

TEST_CASE("training goes on undisturbed under detect_anomaly") {
  manual_seed(1);
  nn::LSTMCell cell(3, 8);
  auto train = [&](bool watched) {
    std::optional<debug::AnomalyScope> scope;
    if (watched) scope.emplace(debug::AnomalyOptions{});
    Tape tape;
    nn::LSTMState state = cell.initial_state(2);
    for (int t = 0; t < 5; ++t) state = cell(full({2, 3}, 0.1 * t), state);
    return tape.gradient(sum(state.h), cell.W_h).to_vector<float>();
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("the scope of detect_anomaly stays where it is") {
  CHECK_FALSE(std::is_move_constructible_v<debug::AnomalyScope>);
  CHECK_FALSE(std::is_copy_constructible_v<debug::AnomalyScope>);
}
