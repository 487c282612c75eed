#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// From plain public ops.
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  Tensor scores = matmul(q, transpose(k)) / std::sqrt(static_cast<double>(q.size(-1))) + mask;
  Tensor e = exp(scores - stop_gradient(max(scores, -1, {.keepdims = true})));
  return matmul(e / sum(e, -1, {.keepdims = true}), v);
}

using Run = std::function<Tensor(const std::vector<Tensor>&)>;

std::vector<Tensor> first_order(const Run& f, const std::vector<Tensor>& x) {
  Tape tape;
  for (const Tensor& one : x) tape.watch(one);
  Tensor y = f(x);
  Tensor weights = reshape(arange(y.numel(), {.dtype = f64}), y.shape()) * 0.25 - 1;
  return tape.gradient(sum(y * weights), x);
}

struct Orders {
  std::vector<Tensor> fused, first, second;
};

Orders orders(const Run& f, const std::vector<Tensor>& x) {
  Orders found;
  found.fused = first_order(f, x);
  Tape tape;
  for (const Tensor& one : x) tape.watch(one);
  found.first = first_order(f, x);
  Tensor total = zeros({}, {.dtype = f64});
  for (const Tensor& gradient : found.first) total = total + sum(square(gradient));
  found.second = tape.gradient(total, x);
  return found;
}

double apart(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double largest = max(abs(b[i])).item();
    worst = std::max(worst, max(abs(a[i] - b[i])).item() / std::max(1.0, largest));
  }
  return worst;
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
      Run ours = [&](auto& given) {
        return scaled_dot_product_attention(given[0], given[1], given[2], {.mask = mask, .causal = causal});
      };
      Run plain = [&](auto& given) { return plain_attention(given[0], given[1], given[2], plain_mask); };
      CHECK(apart({ours(x)}, {plain(x)}) < 1e-13);
      Orders found = orders(ours, x), expected = orders(plain, x);
      CHECK(apart(found.fused, expected.fused) < 1e-12);
      CHECK(apart(found.first, expected.first) < 1e-12);
      CHECK(apart(found.second, expected.second) < 1e-11);
    }
}

TEST_CASE("a query that sees no key gets zeros, and no gradient is NaN") {
  std::vector<Tensor> x{ones({2, 3}, {.dtype = f64}), ones({2, 3}, {.dtype = f64}), ones({2, 3}, {.dtype = f64})};
  Tensor flags = tensor({{true, true}, {false, false}});
  Tensor numbers = where(flags, 0.0, full({}, -INFINITY, {.dtype = f64}));
  for (const Tensor& mask : {flags, numbers}) {
    Run f = [&](auto& given) { return scaled_dot_product_attention(given[0], given[1], given[2], {.mask = mask}); };
    CHECK(array_of(f(x)).values == std::vector<double>{1, 1, 1, 0, 0, 0});
    Orders found = orders(f, x);
    for (const std::vector<Tensor>& gradients : {found.fused, found.first, found.second})
      for (const Tensor& gradient : gradients) CHECK(all(isfinite(gradient)).item() == 1);
  }
  Run with_mask = [&](auto& given) { return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = given[0]}); };
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

TEST_CASE("embedding_bag equals taking the rows and bringing them together, to first and second order") {
  manual_seed(22);
  std::vector<Tensor> x{randn({6, 3}, {.dtype = f64}), randn({4, 5}, {.dtype = f64})};
  Tensor indices = randint(0, 6, {4, 5});
  const std::pair<Run, Run> pairs[] = {
      {[&](auto& given) {
         return embedding_bag(given[0], indices, {.mode = BagMode::sum, .per_sample_weights = given[1]});
       },
       [&](auto& given) { return sum(embedding(given[0], indices) * unsqueeze(given[1], 2), 1); }},
      {[&](auto& given) { return embedding_bag(square(given[0]), indices) * sum(given[1]); },
       [&](auto& given) { return mean(embedding(square(given[0]), indices), 1) * sum(given[1]); }},
  };
  for (const auto& [ours, plain] : pairs) {
    CHECK(apart({ours(x)}, {plain(x)}) < 1e-14);
    Orders found = orders(ours, x), expected = orders(plain, x);
    CHECK(apart(found.fused, expected.fused) < 1e-13);
    CHECK(apart(found.first, expected.first) < 1e-13);
    CHECK(apart(found.second, expected.second) < 1e-12);
  }
}

TEST_CASE("empty bags give zeros, NaN is the largest, and the first of equals has the gradient") {
  Tensor table = tensor({{1.0, 1.0}, {1.0, std::nan("")}, {0.5, 2.0}});
  Tensor indices = tensor({0, 1, 2}), offsets = tensor({0, 0, 3});
  Tape tape;
  tape.watch(table);
  Tensor y = embedding_bag(table, indices, {.mode = BagMode::max, .offsets = offsets});
  std::vector<double> values = array_of(y).values;
  CHECK((values[0] == 0 && values[1] == 0 && values[2] == 1 && std::isnan(values[3])));
  CHECK((values[4] == 0 && values[5] == 0));
  CHECK(array_of(tape.gradient(y, table, {.seed = ones({3, 2}, {.dtype = f64})})).values ==
        std::vector<double>{1, 0, 0, 1, 0, 0});
}

TEST_CASE("embedding_bag refuses what does not fit") {
  Tensor u, m = zeros({3, 2}), list = arange(4) - 2, pairs = zeros({2, 2}, {.dtype = i64}), starts = tensor({0, 2});
  all_fail<Error>({
      Bad("embedding_bag: an operand is an undefined tensor", [&] { embedding_bag(u, pairs); }),
      Bad("embedding_bag: an operand is an undefined tensor", [&] { embedding_bag(m, u); }),
      Bad("embedding_bag: per_sample_weights are for sums only",
          [&] {
            embedding_bag(m, pairs, {.per_sample_weights = zeros({2, 2})});
          }),
  });
  all_fail<ShapeError>({
      Bad("embedding_bag: the table (3,) f32 is not a matrix of rows", [&] { embedding_bag(zeros({3}), pairs); }),
      Bad("embedding_bag: indices (4,) i64: there must be (B, L), or a vector with offsets",
          [&] { embedding_bag(m, list); }),
      Bad("embedding_bag: indices (2, 2) i64: there must be (B, L), or a vector with offsets",
          [&] { embedding_bag(m, pairs, {.offsets = starts}); }),
      Bad("embedding_bag: the offsets (2, 2) i64 are not a vector",
          [&] { embedding_bag(m, list, {.offsets = pairs}); }),
      Bad("embedding_bag: the per_sample_weights (4,) do not have the shape of the indices (2, 2)",
          [&] { embedding_bag(m, pairs, {.mode = BagMode::sum, .per_sample_weights = zeros({4})}); }),
  });
  all_fail<DTypeError>({
      Bad("embedding_bag: takes a floating tensor, not (2, 2) i64", [&] { embedding_bag(pairs, pairs); }),
      Bad("embedding_bag: indices are i32 or i64, not (3, 2) f32", [&] { embedding_bag(m, m); }),
      Bad("embedding_bag: indices are i32 or i64, not (4,) f32",
          [&] { embedding_bag(m, list, {.offsets = zeros({4})}); }),
      Bad("embedding_bag: the per_sample_weights (2, 2) f64 do not have the table's dtype f32",
          [&] {
            embedding_bag(m, pairs, {.mode = BagMode::sum, .per_sample_weights = zeros({2, 2}, {.dtype = f64})});
          }),
  });
  all_fail<IndexError>({
      Bad("embedding_bag: index 3 is out of range", [&] { embedding_bag(m, pairs + 3); }),
      Bad("embedding_bag: the offset 1 does not fit: they start with 0, ascend, and are at most 4",
          [&] {
            embedding_bag(m, list, {.offsets = tensor({1, 2})});
          }),
      Bad("embedding_bag: the offset 2 does not fit",
          [&] {
            embedding_bag(m, list, {.offsets = tensor({0, 3, 2})});
          }),
      Bad("embedding_bag: the offset 5 does not fit",
          [&] {
            embedding_bag(m, list, {.offsets = tensor({0, 5})});
          }),
  });
}

}  // namespace reel_test
