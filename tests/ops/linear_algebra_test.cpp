#include <reel/reel.h>

#include <cmath>
#include <cstring>

#include "catch.h"
#include "ops/bad_input.h"

namespace reel_test {

using namespace reel;

namespace {

double furthest(const Tensor& a, const Tensor& b) { return a.numel() == 0 ? 0 : max(abs(a - b)).item(); }

Tensor identity(std::int64_t size) { return eye(size, {.dtype = f64}); }

}  // namespace

TEST_CASE("factors are orthogonal, triangular and ordered as promised, whatever the matrix") {
  manual_seed(11);
  for (const Shape& shape : {Shape{6, 4}, Shape{4, 6}, Shape{5, 5}, Shape{3, 7, 2}, Shape{70, 40}})
    for (bool is_deficient : {false, true}) {
      CAPTURE(to_string(shape), is_deficient);
      Tensor a = randn(shape, {.dtype = f64});
      if (is_deficient) a = concat({slice(a, -1, 0, 1), slice(a, -1, 0, shape[-1] - 1)}, -1);
      auto [q, r] = qr(a);
      CHECK(furthest(matmul(q, r), a) < 1e-12);
      CHECK(furthest(matmul(transpose(q), q), expand(identity(q.size(-1)), matmul(transpose(q), q).shape())) < 1e-12);
      CHECK(furthest(triu(r), r) == 0);
      auto [u, s, vh] = svd(a);
      CHECK(furthest(matmul(u * unsqueeze(s, -2), vh), a) < 1e-12);
      CHECK(furthest(matmul(transpose(u), u), expand(identity(u.size(-1)), matmul(transpose(u), u).shape())) < 1e-12);
      CHECK(furthest(matmul(vh, transpose(vh)), expand(identity(u.size(-1)), matmul(vh, transpose(vh)).shape())) <
            1e-12);
      CHECK(min(slice(s, -1, 0, s.size(-1) - 1) - slice(s, -1, 1)).item() >= 0);
      CHECK(min(s).item() >= 0);
    }
}

TEST_CASE("eigenvectors are orthogonal and belong to rising values; only the lower triangle is read") {
  manual_seed(12);
  Tensor x = randn({3, 9, 9}, {.dtype = f64}), a = x + transpose(x);
  auto [values, vectors] = eigh(a);
  CHECK(furthest(matmul(a, vectors), vectors * unsqueeze(values, -2)) < 1e-12);
  CHECK(furthest(matmul(transpose(vectors), vectors), expand(identity(9), {3, 9, 9})) < 1e-12);
  CHECK(min(slice(values, -1, 1) - slice(values, -1, 0, 8)).item() >= 0);
  Tensor lower = tril(a) + triu(full({9, 9}, NAN, {.dtype = f64}), 1);
  CHECK(furthest(eigh(lower).values, values) == 0);
  Tensor definite = matmul(a, a) + identity(9), half = tril(definite) + triu(full({9, 9}, NAN, {.dtype = f64}), 1);
  CHECK(furthest(cholesky(half), cholesky(definite)) == 0);
  CHECK(furthest(matmul(cholesky(definite), transpose(cholesky(definite))), definite) < 1e-11);
}

TEST_CASE("determinants of singular, large and small matrices") {
  Tensor singular = tensor({{1.0, 2.0}, {2.0, 4.0}});
  CHECK(det(singular).item() == 0);
  CHECK(slogdet(singular).sign.item() == 0);
  CHECK(slogdet(singular).logabsdet.item() == -HUGE_VAL);
  CHECK(logdet(singular).item() == -HUGE_VAL);
  CHECK(std::isnan(logdet(tensor({{0.0, 1.0}, {1.0, 0.0}})).item()));
  CHECK(slogdet(tensor({{0.0, 1.0}, {1.0, 0.0}})).sign.item() == -1);
  Tensor large = identity(400) * 1e200;
  CHECK(det(large).item() == HUGE_VAL);
  CHECK(slogdet(large).logabsdet.item() == Approx(400 * 200 * std::log(10.0)));
  CHECK(std::isnan(det(full({2, 2}, NAN)).item()));
  CHECK(std::isnan(slogdet(full({2, 2}, NAN)).sign.item()));
}

TEST_CASE("gradients of factors of equal values are those of what does not depend on the choice") {
  // Every orthogonal matrix has singular values of 1: their sum still has a gradient.
  Tape tape;
  Tensor a = identity(3);
  tape.watch(a);
  CHECK(furthest(tape.gradient(sum(svd(a).s), a), identity(3)) < 1e-14);
  Tape other;
  other.watch(a);
  CHECK(furthest(other.gradient(sum(eigh(a).values), a), identity(3)) < 1e-14);
  Tape third;
  third.watch(a);
  CHECK(furthest(third.gradient(sum(svdvals(a)) + sum(eigvalsh(a)), a), 2 * identity(3)) < 1e-14);
}

TEST_CASE("matrices without a solution are named") {
  Tensor good = eye(2), bad = tensor({{1.0f, 2.0f}, {2.0f, 4.0f}});
  Tensor batch = reshape(stack({good, good, good, bad, good, bad}), {3, 2, 2, 2}), unwell = full({2, 2}, NAN);
  all_fail<Error>({
      Bad("solve: the matrix is singular", [&] { solve(bad, ones({2})); }),
      Bad("solve: matrix (1, 1) of (3, 2, 2, 2) f32 is singular", [&] { solve(batch, ones({2})); }),
      Bad("inv: matrix (1, 1) of (3, 2, 2, 2) f32 is singular", [&] { inv(batch); }),
      Bad("triangular_solve: the matrix is singular: it has a 0 on its diagonal",
          [&] {
            triangular_solve(tril(bad) * tensor({1.0f, 0.0f}), ones({2}));
          }),
      Bad("cholesky: matrix (1, 1) of (3, 2, 2, 2) f32 is not positive definite", [&] { cholesky(batch); }),
      Bad("cholesky: the matrix is not positive definite", [&] { cholesky(unwell); }),
      Bad("cholesky: the matrix is not positive definite", [&] { cholesky(-good); }),
      Bad("svd: the matrix holds NaN or infinity", [&] { svd(unwell); }),
      Bad("svdvals: the matrix holds NaN or infinity", [&] { svdvals(unwell); }),
      Bad("eigh: the matrix holds NaN or infinity", [&] { eigh(good * HUGE_VALF); }),
      Bad("eigvalsh: the matrix holds NaN or infinity", [&] { eigvalsh(good * HUGE_VALF); }),
  });
  Tape tape;
  tape.watch(bad);
  Tensor y = det(bad);
  CHECK_THAT(error_of<Error>([&] { tape.gradient(y, bad); }), contains("inv: the matrix is singular"));
}

TEST_CASE("bad operands of linear algebra are refused") {
  Tensor wide = ones({2, 3}), vector = ones({3}), half = ones({2, 2}, {.dtype = bf16}), square = eye(3);
  all_fail<ShapeError>({
      Bad("solve: takes square matrices, not (2, 3) f32", [&] { solve(wide, vector); }),
      Bad("solve: takes matrices, in the last two axes, not (3,) f32", [&] { solve(vector, vector); }),
      Bad("solve: the right side (2, 3) f32 does not fit the matrices (3, 3) f32: it needs 3 rows",
          [&] { solve(square, wide); }),
      Bad("solve: the right side () f32 does not fit", [&] { solve(square, ones({})); }),
      Bad("solve: leading axes do not broadcast: matrices (2, 3, 3), right side (4, 3, 1)",
          [&] {
            solve(ones({2, 3, 3}), ones({4, 3, 1}));
          }),
      Bad("triangular_solve: takes square matrices, not (2, 3) f32", [&] { triangular_solve(wide, vector); }),
      Bad("triangular_solve: the right side (2, 3) f32 does not fit", [&] { triangular_solve(square, wide); }),
      Bad("inv: takes square matrices, not (2, 3) f32", [&] { inv(wide); }),
      Bad("det: takes square matrices, not (2, 3) f32", [&] { det(wide); }),
      Bad("slogdet: takes square matrices, not (2, 3) f32", [&] { slogdet(wide); }),
      Bad("logdet: takes square matrices, not (2, 3) f32", [&] { logdet(wide); }),
      Bad("cholesky: takes square matrices, not (2, 3) f32", [&] { cholesky(wide); }),
      Bad("eigh: takes square matrices, not (2, 3) f32", [&] { eigh(wide); }),
      Bad("eigvalsh: takes square matrices, not (2, 3) f32", [&] { eigvalsh(wide); }),
      Bad("svdvals: takes matrices, in the last two axes, not (3,) f32", [&] { svdvals(vector); }),
      Bad("qr: takes matrices, in the last two axes, not (3,) f32", [&] { qr(vector); }),
      Bad("svd: takes matrices, in the last two axes, not () f32", [&] { svd(ones({})); }),
  });
  all_fail<DTypeError>({
      Bad("solve: takes matrices of f32 or f64, not (2, 2) bf16; convert them with to(x, f32)",
          [&] { solve(half, ones({2})); }),
      Bad("solve: the matrices (3, 3) f32 and the right side (3,) f64 have different dtypes",
          [&] { solve(square, ones({3}, {.dtype = f64})); }),
      Bad("triangular_solve: takes matrices of f32 or f64", [&] { triangular_solve(half, ones({2})); }),
      Bad("inv: takes matrices of f32 or f64", [&] { inv(half); }),
      Bad("det: takes matrices of f32 or f64",
          [&] {
            det(zeros({2, 2}, {.dtype = i64}));
          }),
      Bad("slogdet: takes matrices of f32 or f64", [&] { slogdet(half); }),
      Bad("logdet: takes matrices of f32 or f64", [&] { logdet(half); }),
      Bad("cholesky: takes matrices of f32 or f64", [&] { cholesky(half); }),
      Bad("qr: takes matrices of f32 or f64", [&] { qr(half); }),
      Bad("svd: takes matrices of f32 or f64", [&] { svd(half); }),
      Bad("eigh: takes matrices of f32 or f64", [&] { eigh(half); }),
  });
  all_fail<Error>({Bad("qr: ", [&] { qr(Tensor()); }), Bad("solve: ", [&] { solve(square, Tensor()); })});
}

TEST_CASE("pivots are the largest of their columns, whatever the matrix") {
  manual_seed(13);
  for (const Shape& shape : {Shape{6, 4}, Shape{4, 6}, Shape{5, 5}, Shape{3, 7, 2}, Shape{40, 40}, Shape{2, 90, 50},
                             Shape{50, 90}, Shape{3, 0}, Shape{0, 3}})
    for (bool is_deficient : {false, true}) {
      CAPTURE(to_string(shape), is_deficient);
      Tensor a = randn(shape, {.dtype = f64});
      if (is_deficient && shape[-1] == 4) a = concat({a(ellipsis, slice(0, 3)), zeros({6, 1}, {.dtype = f64})}, -1);
      auto [p, l, u] = lu(a);
      CHECK(furthest(matmul(p, matmul(l, u)), a) < 1e-12);
      CHECK(furthest(matmul(p, transpose(p)), expand(identity(p.size(-1)), p.shape())) == 0);
      if (l.numel() > 0) CHECK(max(abs(l)).item() == 1);
      CHECK(furthest(triu(u), u) == 0);
      CHECK(furthest(tril(l), l) == 0);
    }
}

TEST_CASE("ranks, pseudo-inverses and least squares of matrices without full rank") {
  Tensor a = tensor({{1.0, 2.0}, {2.0, 4.0}, {0.0, 0.0}}), b = tensor({1.0, 2.0, 3.0});
  CHECK(matrix_rank(a).item() == 1);
  CHECK(matrix_rank(zeros({2, 3})).item() == 0);
  CHECK(matrix_rank(identity(3) * 1e-3, {.absolute = 1e-2}).item() == 0);
  CHECK(matrix_rank(tensor({{1.0, 0.0}, {0.0, 0.1}}), {.relative = 0.2}).item() == 1);
  Tensor y = pinv(a);
  CHECK(furthest(matmul(a, matmul(y, a)), a) < 1e-14);
  CHECK(furthest(matmul(y, matmul(a, y)), y) < 1e-14);
  CHECK(furthest(transpose(matmul(a, y)), matmul(a, y)) < 1e-14);
  auto [solution, residuals, rank] = lstsq(a, b);
  CHECK(furthest(solution, tensor({0.2, 0.4})) < 1e-14);
  CHECK(residuals.item() == Approx(9));
  CHECK(rank.item() == 1);
  // A change of b alone keeps the rank.
  Tape tape;
  tape.watch(b);
  Tensor found = lstsq(a, b).solution;
  CHECK(furthest(tape.gradient(found, b, {.seed = tensor({1.0, 0.0})}), pinv(a)(0)) < 1e-14);
}

TEST_CASE("least squares of a batch, some of whose matrices lack full rank, are those of each matrix alone") {
  Tensor regular = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 7.0}}),
         deficient = tensor({{1.0, 2.0}, {2.0, 4.0}, {3.0, 6.0}}),
         nearly = tensor({{1.0, 2.0}, {2.0, 4.0}, {3.0, 6.1}});
  Tensor b = tensor({{1.0, 0.0}, {2.0, 1.0}, {5.0, 3.0}});
  for (bool wide : {false, true}) {
    std::vector<Tensor> each;
    for (const Tensor& a :
         {regular, deficient, nearly, zeros({3, 2}, {.dtype = f64}), regular * 1e-100, regular * 1e100})
      each.push_back(wide ? transpose(a) : a);
    Tensor right = wide ? slice(b, 0, 0, 2) : b, all = stack(each);
    for (const RankTolerance& tolerance :
         {RankTolerance(), RankTolerance{.absolute = 1e-3}, RankTolerance{.relative = 0.9}}) {
      LeastSquares together = lstsq(all, right, tolerance);
      Tape tape;
      tape.watch(all);
      Tensor gradient = tape.gradient(sum(lstsq(all, right, tolerance).solution), all);
      for (std::size_t i = 0; i < each.size(); ++i) {
        CAPTURE(wide, i, tolerance.absolute);
        auto at = static_cast<std::int64_t>(i);
        LeastSquares alone = lstsq(each[i], right, tolerance);
        CHECK(together.solution(at).to_vector<double>() == alone.solution.to_vector<double>());
        CHECK(together.rank(at).item() == alone.rank.item());
        CHECK(alone.rank.item() == matrix_rank(each[i], tolerance).item());
        Tensor expected = matmul(pinv(each[i], tolerance), right);
        CHECK(furthest(alone.solution, expected) <= 1e-10 * max(abs(expected)).item() + 1e-300);
        Tape own;
        own.watch(each[i]);
        CHECK(furthest(gradient(at), own.gradient(sum(matmul(pinv(each[i], tolerance), right)), each[i])) <=
              1e-10 * max(abs(gradient(at))).item() + 1e-300);
      }
    }
  }
}

TEST_CASE("an exponent in a tensor gives what a plain number gives") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    Tensor x = to(concat({randn({40}) * 3, tensor({0.f, -0.f, HUGE_VALF, -HUGE_VALF, NAN})}), dtype);
    for (double power : {2.0, 3.0, 0.5, -1.0}) {
      CAPTURE(name_of(dtype), power);
      std::vector<double> each = to(pow(x, full(x.shape(), power, {.dtype = dtype})), f64).to_vector<double>(),
                          expected = to(pow(x, power), f64).to_vector<double>();
      CHECK(std::memcmp(each.data(), expected.data(), each.size() * sizeof(double)) == 0);
    }
  }
}

TEST_CASE("exponentials of large, nilpotent and rotating matrices") {
  Tensor turn = tensor({{0.0, -1.0}, {1.0, 0.0}});
  CHECK(furthest(matrix_exp(turn * 3.0), tensor({{std::cos(3), -std::sin(3)}, {std::sin(3), std::cos(3)}})) < 1e-14);
  CHECK(furthest(matrix_exp(tensor({{0.0, 5.0}, {0.0, 0.0}})), tensor({{1.0, 5.0}, {0.0, 1.0}})) < 1e-14);
  Tensor batch = stack({identity(2) * -50.0, identity(2) * 0.01, zeros({2, 2}, {.dtype = f64})});
  Tensor y = matrix_exp(batch);
  CHECK(y(0, 0, 0).item() == Approx(std::exp(-50)).epsilon(1e-12));
  CHECK(y(1, 1, 1).item() == Approx(std::exp(0.01)).epsilon(1e-15));
  CHECK(furthest(y(2), identity(2)) == 0);
  CHECK(matrix_exp(eye(1)).item<float>() == Approx(std::exp(1)).epsilon(1e-6));
}

TEST_CASE("bad operands of norms, least squares and decompositions are refused") {
  Tensor wide = ones({2, 3}), vector = ones({3}), half = ones({2, 2}, {.dtype = bf16}), square = eye(3);
  Tensor unwell = full({2, 2}, NAN);
  all_fail<ShapeError>({
      Bad("matrix_norm: takes matrices, in the last two axes, not (3,) f32", [&] { matrix_norm(vector); }),
      Bad("matrix_norm: this norm is the largest or smallest of no numbers, for (0, 2) f32",
          [&] {
            matrix_norm(zeros({0, 2}), MatrixNorm::infinity);
          }),
      Bad("matrix_rank: takes matrices", [&] { matrix_rank(vector); }),
      Bad("pinv: takes matrices", [&] { pinv(vector); }),
      Bad("lu: takes matrices", [&] { lu(vector); }),
      Bad("matrix_exp: takes square matrices, not (2, 3) f32", [&] { matrix_exp(wide); }),
      Bad("cholesky_solve: takes square matrices, not (2, 3) f32", [&] { cholesky_solve(wide, vector); }),
      Bad("cholesky_solve: the right side (2, 3) f32 does not fit the matrices (3, 3) f32: it needs 3 rows",
          [&] { cholesky_solve(square, wide); }),
      Bad("cholesky_solve: leading axes do not broadcast: matrices (2, 3, 3), right side (4, 3, 1)",
          [&] {
            cholesky_solve(ones({2, 3, 3}), ones({4, 3, 1}));
          }),
      Bad("lstsq: the right side (3,) f32 does not fit the matrices (2, 3) f32: it needs 2 rows",
          [&] { lstsq(wide, vector); }),
      Bad("lstsq: leading axes do not broadcast: matrices (2, 3, 3), right side (4, 3, 1)",
          [&] {
            lstsq(ones({2, 3, 3}), ones({4, 3, 1}));
          }),
  });
  all_fail<DTypeError>({
      Bad("matrix_norm: takes matrices of f32 or f64, not (2, 2) bf16", [&] { matrix_norm(half); }),
      Bad("matrix_rank: takes matrices of f32 or f64", [&] { matrix_rank(half); }),
      Bad("pinv: takes matrices of f32 or f64", [&] { pinv(half); }),
      Bad("lu: takes matrices of f32 or f64", [&] { lu(half); }),
      Bad("matrix_exp: takes matrices of f32 or f64", [&] { matrix_exp(half); }),
      Bad("lstsq: the matrices (3, 3) f32 and the right side (3,) f64 have different dtypes",
          [&] { lstsq(square, ones({3}, {.dtype = f64})); }),
      Bad("cholesky_solve: the matrices (3, 3) f32 and the right side (3,) f64 have different dtypes",
          [&] { cholesky_solve(square, ones({3}, {.dtype = f64})); }),
  });
  all_fail<Error>({
      Bad("pinv: the matrix holds NaN or infinity", [&] { pinv(unwell); }),
      Bad("matrix_exp: a matrix of (2, 2) f32 holds NaN or infinity", [&] { matrix_exp(unwell); }),
      Bad("pinv: a tolerance is negative or NaN: absolute -1, relative 0", [&] { pinv(square, {.absolute = -1}); }),
      Bad("lstsq: a tolerance is negative or NaN: absolute 0, relative nan",
          [&] { lstsq(square, vector, {.relative = NAN}); }),
      Bad("lu: ", [&] { lu(Tensor()); }),
  });
}

}  // namespace reel_test
