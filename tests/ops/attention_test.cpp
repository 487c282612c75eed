#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/gradient_orders.h"

namespace reel_test {

using namespace reel;

namespace {

// Attention composed of plain public ops.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  Tensor scores = matmul(q, transpose(k)) / std::sqrt(static_cast<double>(q.size(-1))) + mask;
  Tensor e = exp(scores - stop_gradient(max(scores, -1, {.keepdims = true})));
  return matmul(e / sum(e, -1, {.keepdims = true}), v);
}

}  // namespace

TEST_CASE("attention equals what plain ops make of it, to first and second order") {
  manual_seed(21);
  for (std::int64_t length : {5, 300})
    for (bool causal : {false, true}) {
      CAPTURE(length, causal);
      std::vector<Tensor> x{randn({2, length, 4}, {.dtype = f64}), randn({2, length, 4}, {.dtype = f64}),
                            randn({2, length, 3}, {.dtype = f64})};
      Tensor mask = randn({length, length}, {.dtype = f64});
      Tensor late = arange(length) > unsqueeze(arange(length), 1);
      Tensor plain_mask = causal ? where(late, -INFINITY, mask) : mask;
      Function ours = [&](auto given) {
        return scaled_dot_product_attention(given[0], given[1], given[2], {.mask = mask, .causal = causal});
      };
      Function plain = [&](auto given) { return plain_attention(given[0], given[1], given[2], plain_mask); };
      check_orders(ours, plain, x, {.second = 1e-11});
    }
}

TEST_CASE("a query that sees no key gets zeros, and no gradient is NaN") {
  std::vector<Tensor> x{ones({2, 3}, {.dtype = f64}), ones({2, 3}, {.dtype = f64}), ones({2, 3}, {.dtype = f64})};
  Tensor flags = tensor({{true, true}, {false, false}});
  Tensor numbers = where(flags, 0.0, full({}, -INFINITY, {.dtype = f64}));
  for (const Tensor& mask : {flags, numbers}) {
    Function f = [&](auto given) { return scaled_dot_product_attention(given[0], given[1], given[2], {.mask = mask}); };
    CHECK(array_of(f(x)).values == std::vector<double>{1, 1, 1, 0, 0, 0});
    Orders found = orders(f, x);
    for (const std::vector<Tensor>& gradients : {found.fused, found.first, found.second})
      for (const Tensor& gradient : gradients) CHECK(all(isfinite(gradient)).item() == 1);
  }
  Function with_mask = [&](auto given) { return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = given[0]}); };
  for (const Tensor& gradient : first_order(with_mask, {numbers})) CHECK(all(isfinite(gradient)).item() == 1);
}

TEST_CASE("attention of huge scores does not overflow, and NaN stays") {
  Tensor q = full({2, 4}, 1e18), k = full({3, 4}, 1e18), v = arange(3, {.dtype = f32});
  Tensor y = scaled_dot_product_attention(q, k, unsqueeze(v, 1));
  CHECK(array_of(y).values == std::vector<double>{1, 1});
  Tensor bad = full({2, 4}, std::nan(""));
  CHECK(all(isnan(scaled_dot_product_attention(bad, k, unsqueeze(v, 1)))).item() == 1);
}

TEST_CASE("dropout of attention drops weights, not results") {
  Tensor q = zeros({64, 4}), k = zeros({64, 4}), v = ones({64, 1});
  Generator first(3), second(3);
  Tensor y = scaled_dot_product_attention(q, k, v, {.dropout = 0.5, .generator = &first});
  CHECK(mean(y).item() == Approx(1).epsilon(0.05));
  CHECK(same_bits(y, scaled_dot_product_attention(q, k, v, {.dropout = 0.5, .generator = &second})));
  CHECK(sum(abs(scaled_dot_product_attention(q, k, v, {.dropout = 1}))).item() == 0);
}

TEST_CASE("attention refuses what does not fit") {
  Tensor u, m = zeros({2, 3}), v = zeros({3}), wide = zeros({2, 3}, {.dtype = f64}),
            ints = zeros({2, 3}, {.dtype = i64});
  auto attend = [](const Arg& a, const Arg& b, const Arg& c, const AttentionOptions& options = {}) {
    return scaled_dot_product_attention(a, b, c, options);
  };
  const std::string op = "scaled_dot_product_attention", name = op + ": ";
  all_fail<Error>({
      Bad(name + "an operand is an undefined tensor", [&] { attend(u, m, m); }),
      Bad(name + "an operand is an undefined tensor", [&] { attend(m, u, m); }),
      Bad(name + "an operand is an undefined tensor", [&] { attend(m, m, u); }),
      Bad(name + "the dropout 1.5 does not lie in [0, 1]", [&] { attend(m, m, m, {.dropout = 1.5}); }),
      Bad(name + "the dropout nan does not lie in [0, 1]", [&] { attend(m, m, m, {.dropout = NAN}); }),
  });
  all_fail<ShapeError>({
      Bad(name + "takes matrices, with any leading axes: queries (3,), keys (2, 3), values (2, 3)",
          [&] { attend(v, m, m); }),
      Bad(name + "queries and keys have different widths: queries (2, 3), keys (2, 4)",
          [&] {
            attend(m, zeros({2, 4}), m);
          }),
      Bad(name + "there are not as many values as keys: queries (2, 3), keys (2, 3), values (3, 3)",
          [&] {
            attend(m, m, zeros({3, 3}));
          }),
      Bad(name + "leading axes do not broadcast: queries (2, 2, 3), keys (3, 2, 3), values (2, 3)",
          [&] {
            attend(zeros({2, 2, 3}), zeros({3, 2, 3}), m);
          }),
      Bad(name + "the mask (3,) does not broadcast to the scores (2, 2)", [&] { attend(m, m, m, {.mask = v}); }),
      Bad(name + "the mask (1, 2, 2) does not broadcast to the scores (2, 2)",
          [&] {
            attend(m, m, m, {.mask = zeros({1, 2, 2})});
          }),
  });
  all_fail<DTypeError>({
      Bad(name + "takes a floating tensor, not (2, 3) i64", [&] { attend(ints, ints, ints); }),
      Bad(name + "(2, 3) f64 does not have the dtype of the queries (2, 3) f32", [&] { attend(m, m, wide); }),
      Bad(name + "the mask is bool or of the queries' dtype f32, not (2, 2) i64",
          [&] {
            attend(m, m, m, {.mask = zeros({2, 2}, {.dtype = i64})});
          }),
  });
}

}  // namespace reel_test
