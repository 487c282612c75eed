#include <reel/reel.h>

#include <cmath>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/gradient_orders.h"

namespace reel_test {

using namespace reel;

TEST_CASE("embedding_bag equals taking the rows and bringing them together, to first and second order") {
  manual_seed(22);
  std::vector<Tensor> x{randn({6, 3}, {.dtype = f64}), randn({4, 5}, {.dtype = f64})};
  Tensor indices = randint(0, 6, {4, 5});
  const std::pair<Function, Function> pairs[] = {
      {[&](auto given) {
         return embedding_bag(given[0], indices, {.mode = BagMode::sum, .per_sample_weights = given[1]});
       },
       [&](auto given) { return sum(embedding(given[0], indices) * unsqueeze(given[1], 2), 1); }},
      {[&](auto given) { return embedding_bag(square(given[0]), indices) * sum(given[1]); },
       [&](auto given) { return mean(embedding(square(given[0]), indices), 1) * sum(given[1]); }},
  };
  for (const auto& [ours, plain] : pairs)
    check_orders(ours, plain, x, {.value = 1e-14, .first = 1e-13, .second = 1e-12});
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

TEST_CASE("a gradient of a table by rows has each row that was taken once, in order, with the sum of its gradients") {
  manual_seed(23);
  const std::vector<std::int64_t> places{4, 0, -1, 4, 0, 4};
  Tensor weights = randn({6, 3});
  for (DType dtype : {f32, f64, bf16, f16})
    for (DType index : {i32, i64}) {
      CAPTURE(name_of(dtype), name_of(index));
      Tensor table = zeros({7, 3}, {.dtype = dtype}).requires_grad(), given = to(weights, dtype);
      Tape tape;
      tape.backward(sum(embedding(table, to(tensor(places), index), {.row_gradient = true}) * given));
      RowGradient found = table.row_grad();
      CHECK(found.rows.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 4, 6});
      Tensor wide = to(given, f64), expected = concat({wide(1) + wide(4), wide(0) + wide(3) + wide(5), wide(2)});
      double rounding = dtype == bf16 ? 0x1p-8 : dtype == f16 ? 0x1p-11 : dtype == f32 ? 0x1p-22 : 0x1p-51;
      CHECK(apart({to(found.values, f64)}, {reshape(expected, {3, 3})}) < 2 * rounding);
    }
}

}  // namespace reel_test
