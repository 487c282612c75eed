#include <reel/reel.h>

#include <limits>

#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), number = zeros({}), ints = tensor({{1, 2}, {3, 4}}),
                        places = zeros({2, 3}, {.dtype = i64});

}  // namespace

TEST_CASE("errors name the function that was called, not an op inside of it") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor bad = tensor({{1., nan}, {2., 3.}}), fine = tensor({{1., 2.}, {3., 5.}}),
               singular = tensor({{1., 2.}, {2., 4.}});
  auto gradient_of = [](auto f, const Tensor& x) {
    Tape tape;
    tape.watch(x);
    tape.gradient(sum(f(x)), x);
  };
  namespace D = distributions;
  const Tensor two = zeros({2}), three = ones({3});
  all_fail<Error>(
      {
          Bad("matrix_norm: the matrix holds NaN", [&] { matrix_norm(bad, MatrixNorm::nuclear); }),
          Bad("matrix_norm: the matrix holds NaN", [&] { matrix_norm(bad, MatrixNorm::two); }),
          Bad("matrix_rank: the matrix holds NaN", [&] { matrix_rank(bad); }),
          Bad("pinv: the matrix holds NaN", [&] { pinv(bad); }),
          Bad("lstsq: the matrix holds NaN", [&] { lstsq(bad, fine); }),
          Bad("cholesky_solve: the matrix is singular",
              [&] {
                cholesky_solve(tensor({{0., 0.}, {1., 1.}}), fine);
              }),
          Bad("gradient of det: inv: the matrix is singular",
              [&] { gradient_of([](auto& x) { return det(x); }, singular); }),
          Bad("gradient of slogdet: inv: the matrix is singular",
              [&] { gradient_of([](auto& x) { return logdet(x); }, singular); }),
          Bad("gradient of lu: triangular_solve: the matrix is singular",
              [&] { gradient_of([](auto& x) { return lu(x).u; }, singular); }),
          Bad("bincount: there is no memory", [&] { bincount(tensor({std::int64_t{1} << 40})); }),
          Bad("histc: takes a floating tensor", [&] { histc(ints); }),
          Bad("xlogy: shapes do not broadcast", [&] { xlogy(m, v); }),
          Bad("cross: ",
              [&] {
                cross(m, ones({2, 4}));
              }),
          Bad("huber_loss: ", [&] { huber_loss(m, v); }),
          Bad("MultivariateNormal: the matrix is not positive definite",
              [&] { D::MultivariateNormal(two, {.covariance_matrix = -eye(2)}); }),
          Bad("Categorical: class 3 is not in [0, 3)", [&] { D::Categorical(three).log_prob(tensor(3)); }),
          Bad("Normal: shapes do not broadcast", [&] { D::Normal(two, 1).log_prob(three); }),
          Bad("Gumbel: shapes do not broadcast", [&] { D::Gumbel(two, 1).log_prob(three); }),
          Bad("Gamma: ", [&] { D::Gamma(two + 1, 1).log_prob(three); }),
          Bad("Beta: ", [&] { D::Beta(two + 1, 1).log_prob(three); }),
          Bad("Bernoulli: ", [&] { D::Bernoulli({.logits = two}).log_prob(three); }),
          Bad("Poisson: ", [&] { D::Poisson(two + 1).log_prob(three); }),
          Bad("Uniform: ", [&] { D::Uniform(two, 2).log_prob(three); }),
          Bad("Dirichlet: the sample shape", [&] { D::Dirichlet(three).sample({-1}); }),
          // A function within another one, and a function after an error.
          Bad("lstsq: the matrix holds NaN", [&] { lstsq(bad, pinv(fine)); }),
          Bad("svd: the matrix holds NaN", [&] { svd(bad); }),
      },
      true);
}

TEST_CASE("numbers that an integer dtype does not hold are refused by every op that takes one") {
  const Tensor u = to(tensor({5, 200}), u8), mask = tensor({true, false});
  auto sentence = [](const std::string& op) { return op + ": the number 300 does not fit u8"; };
  all_fail<DTypeError>({
      Bad(sentence("add"), [&] { u + 300; }),
      Bad(sentence("sub"), [&] { 300 - u; }),
      Bad(sentence("mul"), [&] { u * 300; }),
      Bad(sentence("floor_divide"), [&] { floor_divide(u, 300); }),
      Bad(sentence("mod"), [&] { u % 300; }),
      Bad(sentence("fmod"), [&] { fmod(u, 300); }),
      Bad(sentence("pow"), [&] { pow(u, 300); }),
      Bad(sentence("maximum"), [&] { maximum(u, 300); }),
      Bad(sentence("minimum"), [&] { minimum(u, 300); }),
      Bad(sentence("clamp"), [&] { clamp(u, 0, 300); }),
      Bad(sentence("equal"), [&] { u == 300; }),
      Bad(sentence("not_equal"), [&] { u != 300; }),
      Bad(sentence("less"), [&] { u < 300; }),
      Bad(sentence("less_equal"), [&] { u <= 300; }),
      Bad(sentence("greater"), [&] { u > 300; }),
      Bad(sentence("greater_equal"), [&] { u >= 300; }),
      Bad(sentence("isclose"), [&] { isclose(u, 300); }),
      Bad(sentence("bitwise_and"), [&] { bitwise_and(u, 300); }),
      Bad(sentence("bitwise_or"), [&] { bitwise_or(u, 300); }),
      Bad(sentence("bitwise_xor"), [&] { bitwise_xor(u, 300); }),
      Bad(sentence("bitwise_left_shift"), [&] { bitwise_left_shift(u, 300); }),
      Bad(sentence("bitwise_right_shift"), [&] { bitwise_right_shift(u, 300); }),
      Bad(sentence("where"), [&] { where(mask, u, 300); }),
      Bad(sentence("masked_fill"), [&] { masked_fill(u, mask, 300); }),
      Bad(sentence("add_"), [&] { add_(u, 300); }),
      Bad(sentence("full_like"), [&] { full_like(u, 300); }),
  });
}

TEST_CASE("an undefined operand is named by every op") {
  const std::string rest = ": an operand is an undefined tensor";
  const Tensor& u = undefined;
  all_fail<Error>({
      Bad("add" + rest, [&] { add(u, m); }),
      Bad("add" + rest, [&] { add(m, u); }),
      Bad("div" + rest, [&] { div(1, u); }),
      Bad("less" + rest, [&] { less(u, 1); }),
      Bad("neg" + rest, [&] { neg(u); }),
      Bad("exp" + rest, [&] { exp(u); }),
      Bad("relu" + rest, [&] { relu(u); }),
      Bad("where" + rest, [&] { where(u, m, m); }),
      Bad("where" + rest, [&] { where(m > 0, m, u); }),
      Bad("to" + rest, [&] { to(u, f32); }),
      Bad("sum" + rest, [&] { sum(u); }),
      Bad("mean" + rest, [&] { mean(u, {0}); }),
      Bad("max" + rest, [&] { max(u); }),
      Bad("sum_to" + rest, [&] { sum_to(u, {1}); }),
      Bad("matmul" + rest, [&] { matmul(m, u); }),
      Bad("matmul" + rest, [&] { matmul(u, m); }),
      Bad("reshape" + rest, [&] { reshape(u, {1}); }),
      Bad("transpose" + rest, [&] { transpose(u); }),
      Bad("permute" + rest, [&] { permute(u, {0}); }),
      Bad("expand" + rest, [&] { expand(u, {1}); }),
      Bad("slice" + rest, [&] { slice(u, 0, 0); }),
      Bad("select" + rest, [&] { select(u, 0, 0); }),
      Bad("split" + rest, [&] { split(u, 1); }),
      Bad("unsqueeze" + rest, [&] { unsqueeze(u, 0); }),
      Bad("squeeze" + rest, [&] { squeeze(u, 0); }),
      Bad("concat" + rest,
          [&] {
            concat({m, u});
          }),
      Bad("stack" + rest,
          [&] {
            stack({u, m});
          }),
      Bad("contiguous" + rest, [&] { contiguous(u); }),
      Bad("copy" + rest, [&] { copy(u); }),
      Bad("gather" + rest, [&] { gather(u, 0, places); }),
      Bad("gather" + rest, [&] { gather(m, 0, u); }),
      Bad("scatter_add" + rest, [&] { scatter_add(m, 0, places, u); }),
      Bad("embedding" + rest, [&] { embedding(m, u); }),
      Bad("softmax" + rest, [&] { softmax(u); }),
      Bad("log_softmax" + rest, [&] { log_softmax(u); }),
      Bad("cross_entropy" + rest, [&] { cross_entropy(u, places); }),
      Bad("dropout" + rest, [&] { dropout(u); }),
      Bad("zeros_like" + rest, [&] { zeros_like(u); }),
      Bad("stop_gradient" + rest, [&] { stop_gradient(u); }),
  });
}

TEST_CASE("shapes that do not fit are named with the op") {
  all_fail<ShapeError>({
      Bad("mul: shapes do not broadcast: a (2, 3), b (4,)", [&] { mul(m, v); }),
      Bad("pow: shapes do not broadcast: a (4,), b (2, 3)", [&] { pow(v, m); }),
      Bad("where: shapes do not broadcast: condition (2, 3), a (4,), b ()", [&] { where(m > 0, v, 1.0); }),
      Bad("sum: axis -2 is named twice in (0, -2), for (2, 3) f32",
          [&] {
            sum(m, {0, -2});
          }),
      Bad("max: axis -3 does not exist in (2, 3) f32; it must lie in [-2, 2)", [&] { max(m, {-3}); }),
      Bad("max: there is no largest element of nothing: (0,) f32", [&] { max(zeros({0})); }),
      Bad("sum_to: (5,) does not broadcast to (2, 3) f32", [&] { sum_to(m, {5}); }),
      Bad("matmul: inner sizes differ: a (2, 3), b (2, 3)", [&] { matmul(m, m); }),
      Bad("matmul: inner sizes differ: a (4,), b (2, 3)", [&] { matmul(v, m); }),
      Bad("matmul: takes vectors and matrices: a (), b (4,)", [&] { matmul(number, v); }),
      Bad("matmul: leading axes do not broadcast",
          [&] {
            matmul(zeros({2, 1, 3}), zeros({3, 3, 1}));
          }),
      Bad("reshape: the 6 elements of (2, 3) f32 do not fill the shape (4,)", [&] { reshape(m, {4}); }),
      Bad("reshape: the 6 elements of (2, 3) f32 do not fill the shape (4, -1)",
          [&] {
            reshape(m, {4, -1});
          }),
      Bad("reshape: the shape (-1, -1) may have one size of -1",
          [&] {
            reshape(m, {-1, -1});
          }),
      Bad("reshape: the 0 elements of (0,) f32 do not fill",
          [&] {
            reshape(zeros({0}), {1l << 40, 1l << 40});
          }),
      Bad("transpose: axis -2 does not exist in (4,) f32", [&] { transpose(v); }),
      Bad("permute: the axes (0, 0) are no permutation of those of (2, 3) f32",
          [&] {
            permute(m, {0, 0});
          }),
      Bad("permute: the axes (0,) are no permutation", [&] { permute(m, {0}); }),
      Bad("expand: (2, 3) f32 cannot be repeated to the shape (2, 4)",
          [&] {
            expand(m, {2, 4});
          }),
      Bad("expand: (2, 3) f32 cannot be repeated to the shape (3,)", [&] { expand(m, {3}); }),
      Bad("expand: () f32 cannot be repeated",
          [&] {
            expand(number, {1l << 40, 1l << 40});
          }),
      Bad("slice: a step of 0 goes nowhere, for (2, 3) f32", [&] { slice(m, 0, 0, 1, 0); }),
      Bad("slice: axis 2 does not exist in (2, 3) f32", [&] { slice(m, 2, 0); }),
      Bad("select: axis 0 does not exist in () f32", [&] { select(number, 0, 0); }),
      Bad("split: parts of size 0 cannot be made of (2, 3) f32", [&] { split(m, 0); }),
      Bad("split: axis 2 does not exist in (2, 3) f32", [&] { split(m, 1, 2); }),
      Bad("split: the sizes 1 + 3 do not add up to axis 0 of (2, 3) f32",
          [&] {
            split(m, {1, 3});
          }),
      Bad("split: the sizes 3 + -1 do not add up",
          [&] {
            split(m, {3, -1});
          }),
      Bad("unsqueeze: an axis cannot be put in at 4 of (2, 3) f32", [&] { unsqueeze(m, 4); }),
      Bad("unsqueeze: (1, 1, 1, 1, 1, 1, 1, 1) f32 has 8 axes",
          [&] {
            unsqueeze(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0);
          }),
      Bad("squeeze: axis 1 of (2, 3) f32 has not size 1", [&] { squeeze(m, 1); }),
      Bad("concat: sizes differ off axis 1: (2, 3), (4,)",
          [&] {
            concat({m, v}, 1);
          }),
      Bad("concat: there are no tensors", [&] { concat(std::span<const Tensor>{}); }),
      Bad("concat: axis 0 does not exist in () f32", [&] { concat({number}); }),
      Bad("stack: shapes differ: (2, 3), (4,)",
          [&] {
            stack({m, v});
          }),
      Bad("stack: a new axis cannot be put in at 4 of (2, 3) f32", [&] { stack({m}, 4); }),
      Bad("gather: the index (2, 2) does not fit x (4,)", [&] { gather(v, 0, to(ints, i64)); }),
      Bad("gather: axis 1 does not exist in (4,) f32", [&] { gather(v, 1, arange(2)); }),
      Bad("scatter_add: the updates (4,) do not have the index's shape (2,)", [&] { scatter_add(v, 0, arange(2), v); }),
      Bad("embedding: the table (4,) f32 is not a matrix of rows", [&] { embedding(v, arange(2)); }),
      Bad("embedding: the indices (1, 1, 1, 1, 1, 1, 1, 1)",
          [&] {
            embedding(m, zeros({1, 1, 1, 1, 1, 1, 1, 1}, {.dtype = i64}));
          }),
      Bad("softmax: axis 2 does not exist in (2, 3) f32", [&] { softmax(m, 2); }),
      Bad("cross_entropy: logits (2, 3) want targets (2,), not (3,)", [&] { cross_entropy(m, arange(3)); }),
      Bad("cross_entropy: logits () want targets (), not ()",
          [&] { cross_entropy(number, zeros({}, {.dtype = i64})); }),
  });
}

TEST_CASE("dtypes that make no sense are named with the op") {
  all_fail<DTypeError>({
      Bad("where: the condition is (2, 3) f32, not bool", [&] { where(m, m, m); }),
      Bad("where: takes a tensor here, not the number 1", [&] { where(true, m, m); }),
      Bad("sum: takes a tensor here, not the number 3", [&] { sum(3); }),
      Bad("mean: takes a floating tensor, not (2, 2) i32", [&] { mean(ints); }),
      Bad("softmax: takes a floating tensor, not (2, 2) i32", [&] { softmax(ints); }),
      Bad("dropout: takes a floating tensor, not (2, 2) i32", [&] { dropout(ints); }),
      Bad("full: takes a plain number, not the tensor () f32", [&] { full({2}, number); }),
      Bad("gather: indices are i32 or i64, not (2, 3) f32", [&] { gather(m, 0, m); }),
      Bad("embedding: indices are i32 or i64, not (4,) f32", [&] { embedding(m, v); }),
      Bad("scatter_add: the updates (2, 3) i64 do not have x's dtype f32", [&] { scatter_add(m, 0, places, places); }),
      Bad("cross_entropy: targets are class numbers of i32 or i64, not (2,) f32",
          [&] { cross_entropy(m, zeros({2})); }),
      Bad("cross_entropy: takes a floating tensor, not (2, 2) i32", [&] { cross_entropy(ints, arange(2)); }),
  });
}

TEST_CASE("an index out of range is named before anything is written") {
  all_fail<IndexError>({
      Bad("select: index 2 is out of range for axis 0 of (2, 3) f32", [&] { select(m, 0, 2); }),
      Bad("select: index -4 is out of range for axis 1 of (2, 3) f32", [&] { select(m, 1, -4); }),
      Bad("gather: index 4 is out of range for axis 0 of (4,) f32",
          [&] {
            gather(v, 0, tensor({1, 4}));
          }),
      Bad("gather: index -5 is out of range for axis 0 of (4,) f32", [&] { gather(v, 0, tensor({-5})); }),
      Bad("scatter_add: index 4 is out of range", [&] { scatter_add(v, 0, tensor({4}), ones({1})); }),
      Bad("embedding: index 2 is out of range for axis 0 of (2, 3) f32",
          [&] {
            embedding(m, tensor({0, 2}));
          }),
      Bad("embedding: index -3 is out of range", [&] { embedding(m, tensor({-3})); }),
      Bad("cross_entropy: target 3 is not a class of the logits (2, 3) f32",
          [&] {
            cross_entropy(m, tensor({0, 3}));
          }),
      Bad("cross_entropy: target -1 is not a class",
          [&] {
            cross_entropy(m, tensor({-1, 0}));
          }),
  });
}

TEST_CASE("a failed op records nothing and leaves nothing behind") {
  Tensor w = zeros({2, 3}).requires_grad();
  Tape tape;
  std::int64_t tensors = memory_statistics().live_tensors;
  CHECK_THROWS(w + v);
  CHECK_THROWS(embedding(w, v));
  CHECK_THROWS(select(w, 0, 5));
  CHECK(tape.size() == 0);
  CHECK(memory_statistics().live_tensors == tensors);
}

TEST_CASE("sizes that overflow are refused") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Tensor huge = expand(ones({1}), {std::int64_t{1} << 62});
  CHECK_THROWS_AS(split(arange(4), std::vector<std::int64_t>{most, most, 6}), ShapeError);
  CHECK_THROWS_AS(concat({huge, huge, huge, huge}), ShapeError);
  CHECK_THROWS_AS(sum(ones({2, 3}), {std::int64_t{1} << 32}), ShapeError);
  CHECK_THROWS_AS(permute(ones({2, 3}), {std::int64_t{1} << 32, 1}), ShapeError);
  CHECK_THROWS_AS(zeros({std::int64_t{1} << 62, 8}), ShapeError);
  CHECK_THAT(error_of<MemoryError>([] { zeros({std::int64_t{1} << 43}); }), contains("full: there is no memory for"));
}

}  // namespace reel_test
