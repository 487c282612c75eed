#include <algorithm>
#include <array>
#include <cmath>

#include "ops/table/table.h"

#include "catch.h"
#include "core/parameter_version.h"
#include "core/recent_cache.h"
#include "kernels/kernel_table.h"
#include "ops/bad_input.h"
#include "thread_scope.h"

// Behaviour of products that the op table cannot express.

namespace reel_test {

using namespace reel;

namespace {

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  Generator generator(seed);
  return to(randn(shape, {.generator = &generator}), dtype);
}

// A product of two matrices by plain loops, and for each element the sum of its terms' absolute values.
struct PlainProduct {
  std::size_t depth;
  std::vector<double> totals, sizes;

  PlainProduct(const Array& a, const Array& b) : depth(static_cast<std::size_t>(a.shape[1])) {
    auto rows = static_cast<std::size_t>(a.shape[0]), columns = static_cast<std::size_t>(b.shape[1]);
    totals.resize(rows * columns);
    sizes.resize(rows * columns);
    for (std::size_t i = 0; i < rows; ++i) {
      double *row_totals = &totals[i * columns], *row_sizes = &sizes[i * columns];
      for (std::size_t k = 0; k < depth; ++k) {
        const double left = a.values[i * depth + k], *right = &b.values[k * columns];
        for (std::size_t j = 0; j < columns; ++j) {
          double term = left * right[j];
          row_totals[j] += term;
          row_sizes[j] += term < 0 ? -term : term;
        }
      }
    }
  }

  // The largest error of a product, divided by the op table's bound.
  double worst_error(const Tensor& y) const {
    std::vector<double> found = array_of(y).values;
    double worst = 0, half = y.dtype() == f16 || y.dtype() == bf16 ? last_place(y.dtype()) / 2 : 0;
    double unit = y.dtype() == f64 ? last_place(f64) : last_place(f32);
    REQUIRE(found.size() == totals.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      double bound = half * std::abs(totals[i]) + static_cast<double>(depth + 1) * unit * sizes[i];
      worst = std::max(worst, std::abs(found[i] - totals[i]) / bound);
    }
    return worst;
  }
};

}  // namespace

TEST_CASE("products of all sizes and layouts are as exact as their dtype allows") {
  // Rows around a register tile's, depths and columns around a block's, single rows and columns.
  const std::int64_t sizes[][3] = {{1, 300, 1100}, {2, 513, 70},   {5, 257, 33},    {15, 256, 1025}, {29, 100, 31},
                                   {57, 300, 70},  {90, 513, 200}, {61, 300, 1030}, {300, 40, 1},    {1, 2000, 1},
                                   {1100, 33, 3},  {70, 1, 70},    {33, 600, 129},  {3, 16391, 5}};
  std::uint64_t seed = 0;
  for (const auto& [m, k, n] : sizes)
    for (DType dtype : floating_dtypes) {
      Tensor a = drawn({m, k}, dtype, ++seed), b = drawn({k, n}, dtype, ++seed);
      PlainProduct plain(array_of(a), array_of(b));
      Tensor a_transposed = transpose(copy(transpose(a))), b_transposed = transpose(copy(transpose(b)));
      Tensor a_strided = slice(concat({a, a}, 1), 1, 0, k);
      Tensor b_strided = select(stack({b, b}, -1), -1, 1);
      CAPTURE(m, k, n, name_of(dtype));
      CHECK(plain.worst_error(matmul(a, b)) <= 1);
      CHECK(plain.worst_error(matmul(a_transposed, b)) <= 1);
      CHECK(plain.worst_error(matmul(a, b_transposed)) <= 1);
      CHECK(plain.worst_error(matmul(a_transposed, b_transposed)) <= 1);
      CHECK(plain.worst_error(matmul(a_strided, b_strided)) <= 1);
    }
}

TEST_CASE("products of few rows and odd sizes are exact in all layouts, alone and added to what is there") {
  Generator generator(5);
  auto size = [&](std::int64_t most) {
    return randint(1, most + 1, {}, {.generator = &generator}).item<std::int64_t>();
  };
  for (int round = 0; round < 200; ++round) {
    DType dtype = std::array{f32, f64, f32, bf16, f16}[static_cast<std::size_t>(round % 5)];
    std::int64_t m = size(round % 2 ? 5 : 18), k = size(round % 6 ? 70 : 600), n = size(round % 4 ? 50 : 300);
    auto seed = static_cast<std::uint64_t>(3 * round);
    Tensor a = drawn({m, k}, dtype, seed), b = drawn({k, n}, dtype, seed + 1), c = drawn({m, n}, dtype, seed + 2);
    PlainProduct plain(array_of(a), array_of(b));
    Tensor a_transposed = transpose(copy(transpose(a))), b_transposed = transpose(copy(transpose(b)));
    Tensor b_apart = slice(concat({b, b}, 1), 1, 0, n), transposed_apart = slice(concat({b_transposed, b}, 0), 0, 0, k);
    CAPTURE(m, k, n, name_of(dtype));
    for (const Tensor& left : {a, a_transposed, slice(repeat(a, 2, 1), 1, 0, 2 * k, 2)})
      for (const Tensor& right : {b, b_transposed, b_apart, transposed_apart, transpose(copy(transpose(b_apart)))}) {
        Tensor product = matmul(left, right), sum = copy(c);
        CHECK(plain.worst_error(product) <= 1);
        if (dtype == bf16 || dtype == f16) continue;
        detail::kernels(cpu).matmul_add(sum.body(), left.body(), right.body(), {});
        CHECK(max(abs(to(sum - c - product, f64))).item<double>() < (dtype == f32 ? 1e-4 : 1e-12));
      }
  }
}

TEST_CASE("long rows times contiguous columns have the same bits with and without gaps") {
  for (DType dtype : {f32, f64}) {
    Tensor rows = drawn({3, 40001}, dtype, 1), columns = transpose(drawn({6, 40001}, dtype, 2));
    Tensor with_gaps = slice(repeat(rows, 2, 1), 1, 0, 80002, 2), product = matmul(rows, columns);
    CHECK(same_bits(matmul(with_gaps, columns), product));
    Tensor exact = sum(unsqueeze(to(rows, f64), 2) * unsqueeze(to(columns, f64), 0), {1});
    CHECK(max(abs(to(product, f64) - exact)).item<double>() < (dtype == f32 ? 1e-3 : 1e-11));
  }
}

TEST_CASE("a row times a column is more exact than a plain sum, and has the bits that it has among other rows") {
  for (std::int64_t depth : {1, 2, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 5120, 16384, 16385, 20481, 100003})
    for (DType dtype : {f32, f64}) {
      CAPTURE(depth, name_of(dtype));
      Tensor rows = drawn({9, depth}, dtype, 1), column = drawn({depth, 1}, dtype, 2);
      Tensor row = slice(rows, 0, 4, 5), product = matmul(row, column),
             apart = select(stack({column, column}, -1), -1, 1);
      CHECK(same_bits(matmul(rows, column)(4), product(0)));
      CHECK(same_bits(matmul(stack({row, row}), stack({column, column}))(1), product));
      CHECK(same_bits(dot(row(0), select(column, 1, 0)), product(0)(0)));
      std::vector<double> x = array_of(row).values, y = array_of(column).values;
      long double exact = 0, size = 0, strided = array_of(matmul(row, apart)).values[0];
      for (std::size_t k = 0; k < x.size(); ++k) {
        exact += static_cast<long double>(x[k]) * y[k];
        size += std::abs(static_cast<long double>(x[k]) * y[k]);
      }
      // Far less than a rounding error of each term.
      auto unit = static_cast<long double>(last_place(dtype) / 2);
      long double bound = unit * size * std::min<long double>(static_cast<long double>(depth), 12);
      CHECK(std::abs(array_of(product).values[0] - exact) <= bound);
      CHECK(std::abs(strided - exact) <= bound * 4);
    }
}

TEST_CASE("a product has the same bits whatever the number of threads") {
  const Shape pairs[][2] = {{{500, 260}, {260, 510}},  {{1500, 100}, {100, 70}},        {{70, 100}, {100, 1500}},
                            {{1, 2300}, {2300, 2100}}, {{16, 130, 166}, {16, 166, 90}}, {{3, 200, 100}, {100, 210}},
                            {{2100, 2300}, {2300, 1}}, {{165, 2600}, {2600, 429}},      {{4, 3000}, {3000, 700}},
                            {{1024, 700}, {700, 330}}, {{256, 1100}, {1100, 650}}};
  std::uint64_t seed = 0;
  for (const auto& [a_shape, b_shape] : pairs)
    for (DType dtype : floating_dtypes) {
      Tensor a = drawn(a_shape, dtype, ++seed), b = drawn(b_shape, dtype, ++seed);
      Tensor transposed = transpose(copy(transpose(b)));
      Threads one(1);
      Tensor expected = matmul(a, b), expected_of_transposed = matmul(a, transposed);
      for (int count : {2, 5}) {
        CAPTURE(to_string(a_shape), to_string(b_shape), name_of(dtype), count);
        Threads several(count);
        CHECK(same_bits(matmul(a, b), expected));
        CHECK(same_bits(matmul(a, transposed), expected_of_transposed));
      }
    }
}

TEST_CASE("a row of a product has the same bits alone and among any number of others") {
  constexpr std::int64_t most = 140;
  std::uint64_t seed = 0;
  for (std::int64_t k : {1, 3, 15, 16, 20, 31, 40, 64, 127, 128, 300, 1030, 2100})
    for (std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 24, 31, 32, 33, 50, 130})
      for (DType dtype : {f32, f64}) {
        CAPTURE(k, n, name_of(dtype));
        Tensor rows = drawn({most, k}, dtype, ++seed), b = drawn({k, n}, dtype, ++seed);
        Tensor apart = slice(concat({b, b}, 1), 1, 0, n), parameter = copy(b).requires_grad(),
               with_gaps = select(stack({b, b}, -1), -1, 1),
               backwards = slice(copy(slice(b, 0, -1, -k - 1, -1)), 0, -1, -k - 1, -1);
        Tensor all = matmul(rows, b);
        for (std::int64_t count : {1, 2, 3, 4, 5, 8, 9, 13, 17, 33, 70}) {
          std::int64_t first = (count * 7) % (most - count);
          Tensor some = copy(slice(rows, 0, first, first + count)), expected = slice(all, 0, first, first + count);
          CAPTURE(count);
          for (const Tensor& right : {b, apart, parameter, with_gaps, backwards})
            CHECK(same_bits(matmul(some, right), expected));
          Tensor sum = zeros({count, n}, {.dtype = dtype});
          detail::kernels(cpu).matmul_add(sum.body(), some.body(), b.body(), {});
          CHECK(same_bits(sum + 0, expected + 0));
        }
      }
}

TEST_CASE("a row of a large product has the bits that it has alone") {
  Tensor rows = drawn({1030, 5900}, f32, 1), b = drawn({5900, 1030}, f32, 2);
  CHECK(same_bits(slice(matmul(rows, b), 0, 700, 701), matmul(slice(rows, 0, 700, 701), b)));
}

TEST_CASE("a product of many row counts gives each row what it gives it alone with others") {
  Tensor w = drawn({96, 64}, bf16, 1), x = drawn({300, 96}, bf16, 2), all = matmul(x, w);
  // More sizes than a thread remembers.
  for (std::int64_t rows = 300; rows >= 32; --rows)
    CHECK(same_bits(matmul(slice(x, 0, 0, rows), w), slice(all, 0, 0, rows)));
}

TEST_CASE("a cache of primitives drops what was not asked for longest") {
  struct Key {
    std::int64_t rows, columns;
  };
  detail::RecentCache<Key, int> cache(2);
  int made = 0;
  auto find = [&](std::int64_t rows) { return cache.find(Key{rows, 7}, [&] { return ++made; }); };
  CHECK(find(1) == 1);
  CHECK(find(2) == 2);
  CHECK(find(1) == 1);
  CHECK(find(3) == 3);  // in place of 2
  CHECK(find(1) == 1);
  CHECK(find(2) == 4);
  CHECK(cache.size() == 2);
  CHECK_THROWS(cache.find(Key{9, 9}, []() -> int { throw std::runtime_error("none"); }));
  CHECK(cache.size() == 2);
  CHECK(find(1) == 1);
}

TEST_CASE("products keep NaN and infinity in their rows and columns") {
  for (DType dtype : floating_dtypes)
    for (std::int64_t size : {3, 40}) {
      Tensor a = ones({size, size}, {.dtype = f64}), b = zeros({size, size}, {.dtype = f64});
      {
        auto values = a.write<double>();
        values[0] = NAN;
        values[size] = INFINITY;
      }
      Array y = array_of(matmul(to(a, dtype), to(b, dtype)));
      auto width = static_cast<std::size_t>(size);
      CAPTURE(name_of(dtype), size);
      CHECK(std::isnan(y.values[0]));
      CHECK(std::isnan(y.values[width]));  // ∞ · 0
      CHECK(y.values[2 * width] == 0);
      y = array_of(matmul(to(a, dtype), to(b + 1, dtype)));
      CHECK(std::isnan(y.values[width - 1]));
      CHECK(y.values[width] == INFINITY);
      CHECK(y.values[2 * width] == static_cast<double>(size));
    }
}

TEST_CASE("addmm leaves out what beta = 0 takes away") {
  Tensor c = full({2, 2}, NAN), a = ones({2, 3}), b = ones({3, 2});
  CHECK(addmm(c, a, b, {.beta = 0, .alpha = 2}).to_vector<float>() == std::vector<float>(4, 6));
  CHECK(std::isnan(addmm(c, a, b).to_vector<float>()[0]));
  Tape tape;
  tape.watch(c);
  tape.watch(a);
  Tensor y = addmm(c, a, b, {.beta = 0});
  auto gradients = tape.gradient(sum(y), {c, a}, {.unconnected = Unconnected::zeros});
  CHECK(gradients[0].to_vector<float>() == std::vector<float>(4, 0));
}

TEST_CASE("products meet in a common dtype") {
  auto of = [](DType dtype, const Shape& shape) { return ones(shape, {.dtype = dtype}); };
  CHECK(bmm(of(i32, {1, 2, 2}), of(f32, {1, 2, 2})).dtype() == f32);
  CHECK(addmm(of(f64, {2}), of(f32, {1, 2}), of(f32, {2, 2})).dtype() == f64);
  CHECK(addmm(of(u8, {2}), of(u8, {1, 2}), of(u8, {2, 2}), {.beta = 200, .alpha = 30}).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>(2, 260 % 256));
  CHECK(addmm(of(boolean, {2}), of(boolean, {1, 2}), of(boolean, {2, 2})).dtype() == boolean);
  CHECK(outer(of(bf16, {2}), of(f16, {2})).dtype() == f32);
  CHECK(outer(of(i64, {}), of(i32, {2})).dtype() == i64);
  CHECK(dot(of(i32, {2}), of(boolean, {2})).item<std::int32_t>() == 2);
}

TEST_CASE("bad input to products is one sentence") {
  Tensor m = ones({2, 3}), n = ones({3, 2}), batch = ones({2, 2, 3}), other = ones({3, 3, 2}), v = ones({3}), u;
  Tensor whole = ones({2, 2}, {.dtype = i32}), flags = ones({2, 2}, {.dtype = boolean}),
         bytes = ones({2, 2}, {.dtype = u8});
  all_fail<ShapeError>({
      Bad("bmm: takes tensors of rank 3, not a (2, 3), b (3, 2)", [&] { bmm(m, n); }),
      Bad("bmm: takes tensors of rank 3, not a (2, 2, 3), b (3, 2)", [&] { bmm(batch, n); }),
      Bad("bmm: batch sizes differ: a (2, 2, 3), b (3, 3, 2)", [&] { bmm(batch, other); }),
      Bad("bmm: inner sizes differ: a (2, 2, 3), b (2, 2, 3)", [&] { bmm(batch, batch); }),
      Bad("addmm: a and b must be matrices: a (3,), b (3, 2)", [&] { addmm(m, v, n); }),
      Bad("addmm: a and b must be matrices: a (2, 3), b (3,)", [&] { addmm(m, m, v); }),
      Bad("addmm: inner sizes differ: a (2, 3), b (2, 3)", [&] { addmm(m, m, m); }),
      Bad("addmm: c (2, 3) does not broadcast to (2, 2)", [&] { addmm(m, m, n); }),
      Bad("addmm: c (1, 2, 2) does not broadcast to (2, 2)",
          [&] {
            addmm(ones({1, 2, 2}), m, n);
          }),
      Bad("dot: takes two vectors of one size, not a (3,), b (2,)", [&] { dot(v, ones({2})); }),
      Bad("dot: takes two vectors of one size, not a (3,), b (2, 3)", [&] { dot(v, m); }),
      Bad("dot: takes two vectors of one size, not a (), b (3,)", [&] { dot(ones({}), v); }),
  });
  all_fail<DTypeError>({
      Bad("addmm: 0.5 is no whole number, which i32 operands need",
          [&] { addmm(whole, whole, whole, {.alpha = 0.5}); }),
      Bad("addmm: nan is no whole number", [&] { addmm(whole, whole, whole, {.beta = NAN}); }),
      Bad("addmm: 1e+300 is no whole number", [&] { addmm(whole, whole, whole, {.beta = 1e300}); }),
      Bad("addmm: the number -1 does not fit u8", [&] { addmm(bytes, bytes, bytes, {.beta = -1}); }),
      Bad("addmm: bools are not multiplied by 2", [&] { addmm(flags, flags, flags, {.beta = 2}); }),
      Bad("bmm: takes a tensor here, not the number 2", [&] { bmm(2, batch); }),
      Bad("addmm: takes a tensor here, not the number 1", [&] { addmm(1, m, n); }),
      Bad("outer: takes a tensor here, not the number 2", [&] { outer(v, 2); }),
      Bad("dot: takes a tensor here, not the number 2", [&] { dot(v, 2); }),
  });
  all_fail<Error>({
      Bad("bmm: an operand is an undefined tensor", [&] { bmm(batch, u); }),
      Bad("addmm: an operand is an undefined tensor", [&] { addmm(u, m, n); }),
      Bad("addmm: an operand is an undefined tensor", [&] { addmm(m, u, n); }),
      Bad("outer: an operand is an undefined tensor", [&] { outer(u, v); }),
      Bad("dot: an operand is an undefined tensor", [&] { dot(v, u); }),
  });
}

}  // namespace reel_test
