#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/gradient_orders.h"

// Gradients that have their own kernel, against compositions of plain ops.

namespace reel_test {

using namespace reel;

namespace {

constexpr std::uint64_t seed = 99;

Tensor composed_softmax(const Tensor& x, int axis) {
  Tensor e = exp(x - stop_gradient(max(x, {axis}, {.keepdims = true})));
  return e / sum(e, {axis}, {.keepdims = true});
}

Tensor composed_log_softmax(const Tensor& x, int axis) {
  Tensor shifted = x - stop_gradient(max(x, {axis}, {.keepdims = true}));
  return shifted - log(sum(exp(shifted), {axis}, {.keepdims = true}));
}

Tensor composed_cross_entropy(const Tensor& x, const Tensor& targets) {
  Tensor counted = to(targets != -100, x.dtype());
  Tensor chosen = gather(composed_log_softmax(x, 1), 1, unsqueeze(where(targets == -100, 0, targets), 1));
  return -sum(squeeze(chosen, 1) * counted) / sum(counted);
}

struct Pair {
  std::string name;
  Function fused, composed;
};

std::vector<Pair> pairs() {
  Tensor targets = tensor({std::int64_t{3}, std::int64_t{-100}, std::int64_t{0}});
  return {
      {"softmax", [](auto x) { return softmax(x[0]); }, [](auto x) { return composed_softmax(x[0], 1); }},
      {"softmax along 0", [](auto x) { return softmax(x[0], 0); }, [](auto x) { return composed_softmax(x[0], 0); }},
      {"log_softmax", [](auto x) { return log_softmax(x[0]); }, [](auto x) { return composed_log_softmax(x[0], 1); }},
      {"log_softmax along 0", [](auto x) { return log_softmax(x[0], 0); },
       [](auto x) { return composed_log_softmax(x[0], 0); }},
      {"cross_entropy", [targets](auto x) { return cross_entropy(x[0], targets); },
       [targets](auto x) { return composed_cross_entropy(x[0], targets); }},
      {"cross_entropy with i32 targets", [targets](auto x) { return cross_entropy(x[0], to(targets, i32)); },
       [targets](auto x) { return composed_cross_entropy(x[0], targets); }},
      {"cross_entropy of each example alone",
       [targets](auto x) {
         Tensor total = cross_entropy(x[0](0), targets(0), {.reduction = LossReduction::sum});
         for (std::int64_t i : {1, 2})
           total = total + cross_entropy(slice(x[0], 0, i, i + 1), slice(targets, 0, i, i + 1),
                                         {.reduction = LossReduction::sum});
         return total;
       },
       [targets](auto x) { return composed_cross_entropy(x[0], targets) * 2; }},
  };
}

}  // namespace

TEST_CASE("fused gradients equal those of composed ops, to first and second order") {
  CAPTURE(seed);
  manual_seed(seed);
  for (const Shape& shape : {Shape{3, 5}, Shape{3, 40}})
    for (const Pair& pair : pairs()) {
      CAPTURE(pair.name, to_string(shape));
      check_orders(pair.fused, pair.composed, {randn(shape, {.dtype = f64}) * 2});
    }
}

TEST_CASE("the fused and the recorded gradient of an ignored example are both zero, whatever its logits") {
  Tensor x = tensor({{1.0, 2.0}, {std::nan(""), 3.0}});
  Tensor targets = tensor({std::int64_t{1}, std::int64_t{-100}});
  Function f = [&](auto given) { return cross_entropy(given[0], targets); };
  for (bool recorded : {false, true}) {
    CAPTURE(recorded);
    Array gradient = array_of(recorded ? orders(f, {x}).first[0] : first_order(f, {x})[0]);
    CHECK(gradient.values[2] == 0);
    CHECK(gradient.values[3] == 0);
    CHECK(gradient.values[0] > 0);
  }
}

}  // namespace reel_test
