#include <reel/reel.h>

#include <limits>

#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

using Places = std::vector<std::int64_t>;

Places places(const Tensor& indices) { return indices.to_vector<std::int64_t>(); }

const Tensor undefined, m = zeros({2, 3}), v = zeros({4}), number = zeros({});

}  // namespace

TEST_CASE("NaN is larger than every number, and the zeros are equal") {
  for (DType dtype : {f32, f64, bf16, f16}) {
    CAPTURE(name_of(dtype));
    Tensor x = to(doubles({nan, 0, infinity, -0.0, -nan, -infinity, 1e-7, -1}), dtype);
    CHECK(places(sort(x).indices) == Places{5, 7, 1, 3, 6, 2, 0, 4});
    CHECK(places(sort(x, 0, {.descending = true}).indices) == Places{0, 4, 2, 6, 1, 3, 7, 5});
    CHECK(places(argsort(x)) == places(sort(x).indices));
    CHECK(places(topk(x, 3).indices) == Places{0, 4, 2});
    CHECK(places(topk(x, 4, 0, {.largest = false}).indices) == Places{5, 7, 1, 3});
    // The values are x's own, to the bit.
    CHECK(same_bits(sort(x).values, take(x, sort(x).indices)));
    CHECK(same_bits(topk(x, 8).values, take(x, topk(x, 8).indices)));
    Tensor sorted = sort(x).values;
    CHECK(places(searchsorted(sorted, x)) == Places{6, 2, 5, 2, 6, 0, 4, 1});
    CHECK(places(searchsorted(sorted, x, {.right = true})) == Places{8, 4, 6, 4, 8, 1, 5, 2});
  }
}

TEST_CASE("the ends of the integers are in order") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max(), least = std::numeric_limits<std::int64_t>::min();
  CHECK(places(sort(tensor({most, least, std::int64_t{0}, std::int64_t{-1}})).indices) == Places{1, 3, 2, 0});
  Tensor narrow = tensor({std::numeric_limits<int>::max(), std::numeric_limits<int>::min(), 0, -1});
  CHECK(places(argsort(narrow)) == Places{1, 3, 2, 0});
  for (DType dtype : {i8, i16}) {
    Tensor ends = to(to(narrow, i64) / (dtype == i8 ? 1 << 24 : 1 << 16), dtype);
    CHECK(places(argsort(ends)) == places(argsort(to(ends, i32))));
  }
  CHECK(places(argsort(to(narrow, u8))) == places(argsort(to(to(narrow, u8), i32))));
  CHECK(places(topk(tensor({false, true, true, false}), 3).indices) == Places{1, 2, 0});
}

TEST_CASE("equal elements keep their order in rows of every length") {
  manual_seed(5);
  for (std::int64_t size : {2, 9, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 2000, 200000})
    for (DType dtype : {f32, f64, i32, i64}) {
      CAPTURE(size, name_of(dtype));
      Tensor x = to(rand({size}) * 50 - 25, i32);
      for (bool descending : {false, true}) {
        auto [values, indices] = sort(to(x, dtype), 0, {.descending = descending});
        CHECK(same_bits(values, take(to(x, dtype), indices)));
        std::vector<int> found = to(values, i32).to_vector<int>();
        Places at = places(indices);
        bool ordered = true;
        for (std::size_t i = 1; i < at.size(); ++i)
          ordered &= found[i - 1] == found[i] ? at[i - 1] < at[i] : (found[i - 1] < found[i]) != descending;
        CHECK(ordered);
        for (std::int64_t count : {std::int64_t{5}, std::int64_t{70}, size / 2})
          if (count <= size)
            CHECK(same_bits(topk(to(x, dtype), count, 0, {.largest = descending}).indices, indices(slice(0, count))));
      }
    }
}

TEST_CASE("operands of a search meet in one dtype") {
  CHECK(places(searchsorted(tensor({1, 2, 3}), doubles({1.5, 3}))) == Places{1, 2});
  CHECK(searchsorted(tensor({1, 2, 3}), 2).item<std::int64_t>() == 1);
  CHECK(searchsorted(tensor({1.f, 2.f}), 2, {.right = true}).shape() == Shape{});
}

TEST_CASE("what cannot be put in order is named") {
  all_fail<ShapeError>({
      Bad("sort: axis 2 does not exist in (2, 3) f32", [&] { sort(m, 2); }),
      Bad("sort: axis -1 does not exist in () f32", [&] { sort(number); }),
      Bad("argsort: axis -3 does not exist in (2, 3) f32", [&] { argsort(m, -3); }),
      Bad("topk: axis 2 does not exist in (2, 3) f32", [&] { topk(m, 1, 2); }),
      Bad("topk: there are not 4 elements along axis 1 of (2, 3) f32", [&] { topk(m, 4); }),
      Bad("topk: there are not -1 elements along axis 0 of (2, 3) f32", [&] { topk(m, -1, 0); }),
      Bad("searchsorted: (2, 3) f32 is neither one sorted row for all values, nor has it one for each row of the "
          "values (4,)",
          [&] { searchsorted(m, v); }),
      Bad("searchsorted: () f32 is neither", [&] { searchsorted(number, v); }),
      Bad("searchsorted: (2, 3) f32 is neither",
          [&] {
            searchsorted(m, zeros({3, 3}));
          }),
  });
  const std::string rest = ": an operand is an undefined tensor";
  all_fail<Error>({
      Bad("sort" + rest, [&] { sort(undefined); }),
      Bad("argsort" + rest, [&] { argsort(undefined); }),
      Bad("topk" + rest, [&] { topk(undefined, 1); }),
      Bad("searchsorted" + rest, [&] { searchsorted(undefined, v); }),
      Bad("searchsorted" + rest, [&] { searchsorted(v, undefined); }),
  });
}

}  // namespace reel_test
