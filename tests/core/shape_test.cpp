#include <reel/reel.h>

#include "catch.h"

using namespace reel;

TEST_CASE("a shape knows its rank, its sizes and their product") {
  Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape[1] == 3);
  CHECK(shape.numel() == 24);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{}.empty());
  CHECK(Shape{5, 0}.numel() == 0);
  shape.push_back(5);
  CHECK(shape == Shape{2, 3, 4, 5});
  CHECK_FALSE(shape == Shape{2, 3, 4});
  CHECK_FALSE(shape == Shape{2, 3, 4, 6});
}

TEST_CASE("a negative index of a shape counts from the end, and one out of range is refused") {
  Shape shape{2, 3, 4};
  CHECK(shape[-1] == 4);
  CHECK(shape[-3] == 2);
  CHECK_THROWS_AS(shape[3], IndexError);
  CHECK_THROWS_AS(shape[-4], IndexError);
}

TEST_CASE("a shape prints as a Python tuple") {
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{4}) == "(4,)");
  CHECK(to_string(Shape{2, 3}) == "(2, 3)");
  CHECK(to_string(Shape{-1, 3}) == "(-1, 3)");
}

TEST_CASE("a shape holds eight sizes and refuses a ninth") {
  Shape eight{1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(eight.rank() == 8);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), ShapeError);
  CHECK_THROWS_AS(eight.push_back(9), ShapeError);
  CHECK(eight.rank() == 8);
}

TEST_CASE("shapes broadcast as NumPy's do") {
  struct Row {
    Shape a, b;
    bool fits;
    Shape result = {};
  };
  const Row rows[] = {
      {{}, {}, true, {}},
      {{3}, {}, true, {3}},
      {{2, 3}, {3}, true, {2, 3}},
      {{2, 3}, {2, 1}, true, {2, 3}},
      {{2, 1}, {1, 3}, true, {2, 3}},
      {{4, 1, 3}, {2, 1}, true, {4, 2, 3}},
      {{0}, {1}, true, {0}},
      {{2, 0}, {1, 1}, true, {2, 0}},
      {{1, 1, 1, 1, 1, 1, 1, 2}, {3, 1}, true, {1, 1, 1, 1, 1, 1, 3, 2}},
      {{2}, {3}, false},
      {{2, 3}, {2}, false},
      {{0}, {2}, false},
      {{4, 2, 3}, {3, 3}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(to_string(row.a), to_string(row.b));
    Shape forth, back;
    CHECK(broadcast(row.a, row.b, forth) == row.fits);
    CHECK(broadcast(row.b, row.a, back) == row.fits);
    if (!row.fits) continue;
    CHECK(forth == row.result);
    CHECK(back == row.result);
    Shape a = row.a, b = row.b;
    broadcast(a, b, a);
    CHECK(a == row.result);
    broadcast(row.a, b, b);
    CHECK(b == row.result);
  }
}
