#include <reel/reel.h>

#include <cmath>
#include <functional>
#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

Tensor number(double value) { return full({}, value, {.dtype = f64}); }

using Loss = std::function<Tensor(const Tensor& x, const Tensor& t)>;

// The loss of two numbers and its derivative by the first.
struct Point {
  double value, derivative;
};

Point at_point(const Loss& loss, double x, double t) {
  Tensor input = number(x);
  Tape tape;
  tape.watch(input);
  Tensor y = loss(input, number(t));
  return {y.item(), tape.gradient(y, input).item()};
}

std::vector<Tensor> first_order(const Function& f, const std::vector<Tensor>& x) {
  Tape tape;
  for (const Tensor& one : x) tape.watch(one);
  return tape.gradient(f(x), x);
}

// First-order gradients, recorded or not, and second-order gradients.
std::vector<std::vector<double>> all_orders(const Function& f, const std::vector<Tensor>& x) {
  std::vector<std::vector<double>> all;
  for (const Tensor& gradient : first_order(f, x)) all.push_back(array_of(gradient).values);
  Tape tape;
  for (const Tensor& one : x) tape.watch(one);
  std::vector<Tensor> first = first_order(f, x);
  Tensor total = zeros({}, {.dtype = f64});
  for (const Tensor& gradient : first) {
    all.push_back(array_of(gradient).values);
    total = total + sum(square(gradient));
  }
  for (const Tensor& gradient : tape.gradient(total, x)) all.push_back(array_of(gradient).values);
  return all;
}

double apart(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) worst = std::max(worst, std::abs(a[k][i] - b[k][i]));
  return worst;
}

// The definition of cross_entropy for class indices: −Σ_c w_c q_c log softmax(x)_c.
Tensor plain_cross_entropy(const Tensor& x, const Tensor& targets, const Tensor& weight, double smoothing) {
  Tensor kept = targets != -100;
  Tensor share =
      one_hot(where(kept, targets, 0), x.size(1), f64) * (1 - smoothing) + smoothing / static_cast<double>(x.size(1));
  Tensor shifted = x - stop_gradient(max(x, 1, {.keepdims = true}));
  Tensor logs = shifted - log(sum(exp(shifted), 1, {.keepdims = true}));
  Tensor losses = -sum(share * weight * logs, 1) * to(kept, f64);
  Tensor weights = take(weight, where(kept, targets, 0), 0) * to(kept, f64);
  return sum(losses) / sum(weights);
}

}  // namespace

TEST_CASE("losses of classes equal what plain ops make of them, to first and second order") {
  manual_seed(7);
  Tensor targets = tensor({std::int64_t{3}, std::int64_t{-100}, std::int64_t{0}, std::int64_t{1}});
  std::vector<Tensor> x{randn({4, 5}, {.dtype = f64}), rand({5}, {.dtype = f64}) + 0.5};
  for (double smoothing : {0.0, 0.1}) {
    Function ours = [&](auto given) {
      return cross_entropy(given[0], targets, {.weight = given[1], .label_smoothing = smoothing});
    };
    Function plain = [&](auto given) { return plain_cross_entropy(given[0], targets, given[1], smoothing); };
    CHECK(ours(x).item() == Approx(plain(x).item()).epsilon(1e-13));
    CHECK(apart(all_orders(ours, x), all_orders(plain, x)) < 1e-12);
    Function in_steps = [&](auto given) { return nll_loss(log_softmax(given[0]), targets, {.weight = given[1]}); };
    if (smoothing == 0) CHECK(apart(all_orders(in_steps, x), all_orders(plain, x)) < 1e-12);
  }
}

TEST_CASE("soft targets that are one-hot give what class numbers give") {
  manual_seed(8);
  Tensor x = randn({3, 4, 2}, {.dtype = f64}), targets = randint(0, 4, {3, 2});
  Tensor soft = permute(one_hot(targets, 4, f64), {0, 2, 1});
  for (double smoothing : {0.0, 0.3})
    for (LossReduction reduction : {LossReduction::sum, LossReduction::mean})
      CHECK(cross_entropy(x, soft, {.reduction = reduction, .label_smoothing = smoothing}).item() ==
            Approx(cross_entropy(x, targets, {.reduction = reduction, .label_smoothing = smoothing}).item())
                .epsilon(1e-13));
}

TEST_CASE("losses of numbers equal what plain ops make of them, to first and second order") {
  manual_seed(9);
  std::vector<Tensor> x{randn({3, 4}, {.dtype = f64}), rand({3, 4}, {.dtype = f64})};
  std::vector<std::pair<Function, Function>> pairs{
      {[](auto given) { return mse_loss(given[0], given[1]); },
       [](auto given) { return mean((given[0] - given[1]) * (given[0] - given[1])); }},
      {[](auto given) { return huber_loss(given[0], given[1]); },
       [](auto given) {
         Tensor e = abs(given[0] - given[1]);
         return mean(where(e < 1, e * e / 2, e - 0.5));
       }},
      {[](auto given) { return binary_cross_entropy_with_logits(given[0], given[1]); },
       [](auto given) {
         Tensor p = 1.0 / (1.0 + exp(-given[0]));
         return -mean(given[1] * log(p) + (1.0 - given[1]) * log(1.0 - p));
       }},
      {[](auto given) { return binary_cross_entropy_with_logits(given[0], given[1]); },
       [](auto given) { return binary_cross_entropy(sigmoid(given[0]), given[1]); }},
      {[](auto given) {
         return kl_div(log_softmax(given[0]), given[1], {.reduction = DivergenceReduction::batch_mean});
       },
       [](auto given) { return sum(given[1] * (log(given[1]) - log(softmax(given[0])))) / 3; }},
      {[](auto given) { return triplet_margin_loss(given[0], given[1], given[0] * given[1], {.epsilon = 0}); },
       [](auto given) {
         auto distance = [](const Tensor& a, const Tensor& b) { return sqrt(sum(square(a - b), -1)); };
         return mean(relu(1 + distance(given[0], given[1]) - distance(given[0], given[0] * given[1])));
       }},
  };
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CAPTURE(i);
    CHECK(apart(all_orders(pairs[i].first, x), all_orders(pairs[i].second, x)) < 1e-11);
  }
}

TEST_CASE("fused losses and their gradients are those of their definitions, in every layout and dtype") {
  constexpr std::uint64_t seed = 31;
  CAPTURE(seed);
  manual_seed(seed);
  struct Definition {
    const char* name;
    Loss run;
    double (*value)(double x, double t);
    double (*by_input)(double x, double t);
    double (*by_target)(double x, double t);
  };
  auto cut = [](double e, double limit) { return std::max(-limit, std::min(limit, e)); };
  static const auto huber = [cut](double e, double d) { return cut(e, d) * (e - cut(e, d) / 2); };
  static const auto slope = [cut](double e, double d) { return cut(e, d); };
  const LossOptions each{LossReduction::none};
  const Definition definitions[] = {
      {"mse_loss", [=](auto& x, auto& t) { return mse_loss(x, t, each); },
       [](double x, double t) { return (x - t) * (x - t); }, [](double x, double t) { return 2 * (x - t); },
       [](double x, double t) { return 2 * (t - x); }},
      {"l1_loss", [=](auto& x, auto& t) { return l1_loss(x, t, each); },
       [](double x, double t) { return std::abs(x - t); },
       [](double x, double t) { return double(x > t) - double(x < t); },
       [](double x, double t) { return double(x < t) - double(x > t); }},
      {"huber_loss",
       [](auto& x, auto& t) { return huber_loss(x, t, {.reduction = LossReduction::none, .delta = 0.25}); },
       [](double x, double t) { return huber(x - t, 0.25); }, [](double x, double t) { return slope(x - t, 0.25); },
       [](double x, double t) { return slope(t - x, 0.25); }},
      {"smooth_l1_loss",
       [](auto& x, auto& t) { return smooth_l1_loss(x, t, {.reduction = LossReduction::none, .beta = 0.5}); },
       [](double x, double t) { return huber(x - t, 0.5) / 0.5; },
       [](double x, double t) { return slope(x - t, 0.5) / 0.5; },
       [](double x, double t) { return slope(t - x, 0.5) / 0.5; }},
      {"binary_cross_entropy",
       [](auto& x, auto& t) { return binary_cross_entropy(x, t, {.reduction = LossReduction::none}); },
       [](double x, double t) { return -t * std::log(x) - (1 - t) * std::log1p(-x); },
       [](double x, double t) { return (1 - t) / (1 - x) - t / x; },
       [](double x, double) { return std::log1p(-x) - std::log(x); }},
      {"binary_cross_entropy_with_logits",
       [](auto& x, auto& t) { return binary_cross_entropy_with_logits(x, t, {.reduction = LossReduction::none}); },
       [](double x, double t) { return (1 - t) * x + std::log1p(std::exp(-x)); },
       [](double x, double t) { return 1 / (1 + std::exp(-x)) - t; }, [](double x, double) { return -x; }},
      {"kl_div", [](auto& x, auto& t) { return kl_div(x, t, {.reduction = DivergenceReduction::none}); },
       [](double x, double t) { return t * (std::log(t) - x); }, [](double, double t) { return -t; },
       [](double x, double t) { return std::log(t) + 1 - x; }},
  };
  const std::function<Tensor(const Tensor&)> layouts[] = {[](const Tensor& x) { return x; },
                                                          [](const Tensor& x) { return slice(x, 1, 1, 18, 2); },
                                                          [](const Tensor& x) { return transpose(x, 0, 1); },
                                                          [](const Tensor& x) { return flip(x, 1); },
                                                          [](const Tensor& x) {
                                                            return expand(slice(x, 0, 2, 3), {5, 19});
                                                          },
                                                          [](const Tensor& x) { return x(0, 0); }};
  for (DType dtype : {f32, f64, bf16, f16})
    for (const Definition& definition : definitions)
      for (std::size_t layout = 0; layout < std::size(layouts); ++layout) {
        CAPTURE(definition.name, name_of(dtype), layout);
        // Numbers that every dtype represents, within (0, 1).
        auto drawn = [&] { return to((floor(rand({7, 19}, {.dtype = f64}) * 100) + 14) / 128, dtype); };
        Tensor x = layouts[layout](drawn()), t = layouts[layout](drawn());
        Tape tape;
        tape.watch(x);
        tape.watch(t);
        Tensor y = definition.run(x, t);
        // The gradient of the losses is not one number.
        Tensor weights = to((floor(rand(y.shape(), {.dtype = f64}) * 4) + 1) / 4, dtype);
        auto [dx, dt] = tape.gradient(sum(y * weights), x, t);
        REQUIRE(dx.dtype() == dtype);
        std::vector<double> a = array_of(x).values, b = array_of(t).values, w = array_of(weights).values;
        std::vector<double> values = array_of(y).values, by_x = array_of(dx).values, by_t = array_of(dt).values;
        double ulp = dtype == f64 ? 0x1p-52 : dtype == f32 ? 0x1p-23 : dtype == f16 ? 0x1p-10 : 0x1p-7;
        for (std::size_t i = 0; i < a.size(); ++i) {
          CHECK(std::abs(values[i] - definition.value(a[i], b[i])) < 8 * ulp);
          CHECK(std::abs(by_x[i] - w[i] * definition.by_input(a[i], b[i])) < 40 * ulp);
          CHECK(std::abs(by_t[i] - w[i] * definition.by_target(a[i], b[i])) < 40 * ulp);
        }
      }
}

TEST_CASE("a fused loss equals a sequence of ops also where an element is infinite") {
  CHECK(binary_cross_entropy_with_logits(number(infinite), number(0)).item() == infinite);
  CHECK(binary_cross_entropy_with_logits(number(-50), number(0)).item() == Approx(std::exp(-50.0)).epsilon(1e-12));
  CHECK(binary_cross_entropy_with_logits(number(50), number(1)).item() == Approx(std::exp(-50.0)).epsilon(1e-12));
  Loss logits = [](auto& x, auto& t) { return binary_cross_entropy_with_logits(x, t); };
  CHECK(at_point(logits, 50, 1).derivative == Approx(-std::exp(-50.0)).epsilon(1e-12));
  CHECK(at_point(logits, -50, 0).derivative == Approx(std::exp(-50.0)).epsilon(1e-12));
}

TEST_CASE("losses at kinks and ends are what the header says") {
  Loss l1 = [](auto& x, auto& t) { return l1_loss(x, t); };
  CHECK(at_point(l1, 1, 1).derivative == 0);
  Loss hinge = [](auto& x, auto& t) { return hinge_loss(x, t); };
  CHECK(at_point(hinge, 1, 1).derivative == 0);
  CHECK(at_point(hinge, 0, 1).derivative == -1);
  Loss huber = [](auto& x, auto& t) { return huber_loss(x, t, {.delta = 2}); };
  CHECK(at_point(huber, infinite, 0).value == infinite);
  CHECK(at_point(huber, 1e300, 0).derivative == 2);
  Loss logits = [](auto& x, auto& t) { return binary_cross_entropy_with_logits(x, t); };
  CHECK(at_point(logits, 0, 1).derivative == -0.5);
  CHECK(at_point(logits, 0, 0).derivative == 0.5);
  CHECK(at_point(logits, -2000, 1).value == 2000);
  CHECK(at_point(logits, 2000, 1).value == 0);
  Loss cut = [](auto& x, auto& t) { return binary_cross_entropy(x, t); };
  CHECK(at_point(cut, 0, 1).value == 100);
  CHECK(at_point(cut, 0, 1).derivative == 0);
  CHECK(at_point(cut, 1, 0).value == 100);
  CHECK(at_point(cut, 1, 1).value == 0);
  CHECK(at_point(cut, 1, 1).derivative == -1);
  CHECK(std::isnan(at_point(cut, 1.5, 0.5).value));
  CHECK(std::isnan(at_point(cut, -0.5, 0.5).value));
  Loss divergence = [](auto& x, auto& t) { return kl_div(x, t); };
  CHECK(at_point(divergence, -3, 0).value == 0);
  CHECK(at_point([&](auto& x, auto& t) { return divergence(t, x); }, 0, -3).derivative == 3);
  Loss stirling = [](auto& x, auto& t) { return poisson_nll_loss(t, x, {.full = true}); };
  CHECK(at_point(stirling, 0, 0.5).derivative == -0.5);
  for (Loss loss : {l1, hinge, huber, logits, cut, divergence})
    for (double x : {1.0, std::nan("")}) CHECK(std::isnan(at_point(loss, x, std::nan("")).value));
}

TEST_CASE("half losses are rounded once") {
  Tensor x = full({3000}, 1.0009765625, {.dtype = f16}), t = zeros({3000}, {.dtype = f16});
  // The squares need 21 bits.
  CHECK(mse_loss(x, t).dtype() == f16);
  CHECK(mse_loss(x, t, {.reduction = LossReduction::sum}).item() == 3006);
  CHECK(mse_loss(x * 200, t).item() == 40096);
}

TEST_CASE("losses refuse what does not fit") {
  Tensor u, m = zeros({2, 3}), v = zeros({3}), wide = zeros({2, 3}, {.dtype = f64}),
            ints = zeros({2, 3}, {.dtype = i64});
  Tensor targets = zeros({2}, {.dtype = i64});
  using Pairwise = std::function<void(const Arg&, const Arg&)>;
  const std::pair<std::string, Pairwise> pairwise[] = {
      {"mse_loss", [](auto& a, auto& b) { mse_loss(a, b); }},
      {"l1_loss", [](auto& a, auto& b) { l1_loss(a, b); }},
      {"huber_loss", [](auto& a, auto& b) { huber_loss(a, b); }},
      {"smooth_l1_loss", [](auto& a, auto& b) { smooth_l1_loss(a, b); }},
      {"poisson_nll_loss", [](auto& a, auto& b) { poisson_nll_loss(a, b); }},
      {"binary_cross_entropy", [](auto& a, auto& b) { binary_cross_entropy(a, b); }},
      {"binary_cross_entropy_with_logits", [](auto& a, auto& b) { binary_cross_entropy_with_logits(a, b); }},
      {"kl_div", [](auto& a, auto& b) { kl_div(a, b); }},
      {"hinge_loss", [](auto& a, auto& b) { hinge_loss(a, b); }},
      {"hinge_embedding_loss", [](auto& a, auto& b) { hinge_embedding_loss(a, b); }},
  };
  for (const auto& loss : pairwise) {
    const auto& name = loss.first;
    const auto& run = loss.second;  // clang 14 captures no structured bindings
    all_fail<Error>({Bad(name + ": an operand is an undefined tensor", [&] { run(u, m); }),
                     Bad(name + ": an operand is an undefined tensor", [&] { run(m, u); })});
    all_fail<ShapeError>({
        Bad(name + ": the input (2, 3) and the target (3,) have different shapes", [&] { run(m, v); }),
    });
    all_fail<DTypeError>({
        Bad(name + ": the target (2, 3) f64 does not have the input's dtype f32", [&] { run(m, wide); }),
        Bad(name + ": takes a floating tensor, not (2, 3) i64", [&] { run(m, ints); }),
        Bad(name + ": takes a floating tensor, not (2, 3) i64", [&] { run(ints, m); }),
    });
  }
  all_fail<Error>({
      Bad("nll_loss: an operand is an undefined tensor", [&] { nll_loss(u, targets); }),
      Bad("nll_loss: an operand is an undefined tensor", [&] { nll_loss(m, u); }),
      Bad("cosine_embedding_loss: an operand is an undefined tensor", [&] { cosine_embedding_loss(m, m, u); }),
      Bad("cosine_embedding_loss: an operand is an undefined tensor", [&] { cosine_embedding_loss(m, u, targets); }),
      Bad("triplet_margin_loss: an operand is an undefined tensor", [&] { triplet_margin_loss(m, m, u); }),
      Bad("triplet_margin_loss: an operand is an undefined tensor", [&] { triplet_margin_loss(u, m, m); }),
      Bad("huber_loss: delta must be positive, not 0", [&] { huber_loss(m, m, {.delta = 0}); }),
      Bad("huber_loss: delta must be positive, not nan", [&] { huber_loss(m, m, {.delta = NAN}); }),
      Bad("smooth_l1_loss: beta cannot be -1: it is at least 0", [&] { smooth_l1_loss(m, m, {.beta = -1}); }),
      Bad("cross_entropy: label_smoothing must lie in [0, 1], not be 1.5",
          [&] { cross_entropy(m, targets, {.label_smoothing = 1.5}); }),
      Bad("cross_entropy: label_smoothing must lie in [0, 1], not be nan",
          [&] { cross_entropy(m, targets, {.label_smoothing = NAN}); }),
  });
  all_fail<ShapeError>({
      Bad("binary_cross_entropy: the weight (2,) does not broadcast to the input (2, 3)",
          [&] { binary_cross_entropy(m, m, {.weight = zeros({2})}); }),
      Bad("binary_cross_entropy_with_logits: the weight (1, 2, 3) does not broadcast to the input (2, 3)",
          [&] {
            binary_cross_entropy_with_logits(m, m, {.weight = zeros({1, 2, 3})});
          }),
      Bad("binary_cross_entropy_with_logits: the pos_weight (2,) does not broadcast to the input (2, 3)",
          [&] { binary_cross_entropy_with_logits(m, m, {.pos_weight = zeros({2})}); }),
      Bad("kl_div: there is no batch to take the mean of in () f32",
          [&] { kl_div(zeros({}), zeros({}), {.reduction = DivergenceReduction::batch_mean}); }),
      Bad("nll_loss: numbers (2, 3) want targets (2,), not (3,)", [&] { nll_loss(m, zeros({3}, {.dtype = i64})); }),
      Bad("nll_loss: numbers () want targets (), not ()", [&] { nll_loss(zeros({}), zeros({}, {.dtype = i64})); }),
      Bad("nll_loss: the weight (2,) is not one number for each of 3 classes",
          [&] { nll_loss(m, targets, {.weight = zeros({2})}); }),
      Bad("cross_entropy: the weight (3, 1) is not one number for each of 3 classes",
          [&] {
            cross_entropy(m, targets, {.weight = zeros({3, 1})});
          }),
      Bad("cosine_embedding_loss: vectors (2, 3) and a target (3,): there must be",
          [&] { cosine_embedding_loss(m, m, v); }),
      Bad("cosine_embedding_loss: vectors () and a target (): there must be",
          [&] { cosine_embedding_loss(zeros({}), zeros({}), zeros({})); }),
      Bad("triplet_margin_loss: the negative (3,) and the anchor (2, 3) have different shapes",
          [&] { triplet_margin_loss(m, m, v); }),
      Bad("triplet_margin_loss: takes vectors (…, D), not () f32",
          [&] { triplet_margin_loss(zeros({}), zeros({}), zeros({})); }),
  });
  all_fail<DTypeError>({
      Bad("binary_cross_entropy: the weight (2, 3) f64 does not have the input's dtype f32",
          [&] { binary_cross_entropy(m, m, {.weight = wide}); }),
      Bad("binary_cross_entropy_with_logits: takes a floating tensor, not (2, 3) i64",
          [&] { binary_cross_entropy_with_logits(m, m, {.pos_weight = ints}); }),
      Bad("nll_loss: targets are class numbers of i32 or i64, not (2,) f32", [&] { nll_loss(m, zeros({2})); }),
      Bad("nll_loss: targets are class numbers of i32 or i64, not (2,) bool",
          [&] { nll_loss(m, zeros({2}, {.dtype = boolean})); }),
      Bad("nll_loss: takes a floating tensor, not (2, 3) i64", [&] { nll_loss(ints, targets); }),
      Bad("nll_loss: the weight (3,) f64 does not have the input's dtype f32",
          [&] { nll_loss(m, targets, {.weight = zeros({3}, {.dtype = f64})}); }),
      Bad("triplet_margin_loss: the negative (2, 3) f64 does not have the input's dtype f32",
          [&] { triplet_margin_loss(m, m, wide); }),
  });
  all_fail<IndexError>({
      Bad("nll_loss: target 3 is not a class of the input (2, 3) f32",
          [&] { nll_loss(m, full({2}, 3, {.dtype = i64})); }),
      Bad("nll_loss: target -1 is not a class", [&] { nll_loss(m, full({2}, -1, {.dtype = i32})); }),
      Bad("cross_entropy: target 7 is not a class",
          [&] { cross_entropy(m, full({2}, 7, {.dtype = i64}), {.label_smoothing = 0.1}); }),
  });
}

}  // namespace reel_test
