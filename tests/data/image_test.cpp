#include <reel/data/image.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

using Pixels = std::vector<float>;

Tensor image() { return reshape(arange(1.0f, 10.0f), {1, 3, 3}); }
bool is_near(const Tensor& x, const Tensor& y) { return max(abs(x - y)).item() < 1e-5; }
Pixels pixels(const Tensor& x) { return to(x, f32).to_vector<float>(); }

}  // namespace

TEST_CASE("a shift moves pixels and fills the others") {
  CHECK(pixels(data::shift(image(), 1, -1)) == Pixels{0, 0, 0, 2, 3, 0, 5, 6, 0});
  CHECK(pixels(data::shift(image(), -2, 0, {.value = 7})) == Pixels{7, 8, 9, 7, 7, 7, 7, 7, 7});
  CHECK(pixels(data::shift(image(), 3, 0)) == Pixels(9, 0));
  CHECK(pixels(data::shift(image(), std::numeric_limits<std::int64_t>::min(), 100)) == Pixels(9, 0));
  CHECK(pixels(data::shift(to(image(), u8), 0, 0)) == pixels(image()));
  CHECK(data::shift(to(image(), u8), 1, 0).dtype() == u8);
}

TEST_CASE("a rotation by a quarter moves pixels exactly, counter-clockwise") {
  auto near = [](const Tensor& x, const Pixels& wanted) { return is_near(x, tensor(wanted, x.shape())); };
  CHECK(near(data::rotate(image(), 90), {3, 6, 9, 2, 5, 8, 1, 4, 7}));
  CHECK(near(data::rotate(image(), -90), {7, 4, 1, 8, 5, 2, 9, 6, 3}));
  CHECK(near(data::rotate(image(), 180), {9, 8, 7, 6, 5, 4, 3, 2, 1}));
  CHECK(near(data::rotate(image(), 360), pixels(image())));
  Tensor several = stack({image(), image() + 10});
  CHECK(near(select(data::rotate(several, 90), 0, 1), {13, 16, 19, 12, 15, 18, 11, 14, 17}));
  CHECK(pixels(data::rotate(to(image(), u8), 90)) == Pixels{3, 6, 9, 2, 5, 8, 1, 4, 7});
}

TEST_CASE("a rotation interpolates bilinearly, and takes the value from outside") {
  // The corner (0, 0) of 2 × 2 pixels comes from (0.5 − √½, 0.5) when they turn by 45 degrees.
  Tensor x = reshape(tensor({1.f, 2.f, 3.f, 4.f}), {1, 2, 2});
  float outside = static_cast<float>(std::sqrt(0.5) - 0.5);
  Pixels found = pixels(data::rotate(x, 45, {.value = 5}));
  CHECK(found[0] == Approx(outside * 5 + (1 - outside) * 1.5f));
  CHECK(found[1] == Approx(outside * 5 + (1 - outside) * 3));
  CHECK(found[3] == Approx(outside * 5 + (1 - outside) * 3.5f));
  Tensor level = full({2, 9, 9}, 3);
  CHECK(is_near(data::rotate(level, 33, {.value = 3}), level));
}

TEST_CASE("a flip mirrors left and right") {
  CHECK(pixels(data::horizontal_flip(image())) == Pixels{3, 2, 1, 6, 5, 4, 9, 8, 7});
  Generator generator(3);
  CHECK(pixels(data::random_horizontal_flip(image(), generator, {.probability = 1})) ==
        pixels(data::horizontal_flip(image())));
  CHECK(pixels(data::random_horizontal_flip(image(), generator, {.probability = 0})) == pixels(image()));
  Tensor many = expand(image(), {400, 1, 3, 3});
  double flipped =
      sum(to(select(reshape(data::random_horizontal_flip(many, generator), {400, 9}), 1, 0) == 3.0f, f64)).item();
  CHECK(flipped > 140);
  CHECK(flipped < 260);
}

TEST_CASE("random transforms depend on the generator alone, and differ between images") {
  Tensor several = expand(rand({1, 1, 6, 6}), {20, 1, 6, 6});
  Generator first(5), second(5);
  auto transform = [&](Generator& generator) {
    return data::random_rotation(data::random_shift(several, generator, {.most = 2}), generator, {.most = 20});
  };
  Tensor x = transform(first);
  CHECK(pixels(x) == pixels(transform(second)));
  CHECK(pixels(select(x, 0, 0)) != pixels(select(x, 0, 1)));
  Generator generator(1);
  std::set<Pixels> places;
  Tensor dot = data::shift(pad(ones({1, 1, 1}), {{0, 0}, {2, 2}, {2, 2}}), 0, 0);
  for (int i = 0; i < 300; ++i) places.insert(pixels(data::random_shift(dot, generator, {.most = 1})));
  CHECK(places.size() == 9);
}

TEST_CASE("channels are normalised by their own mean and deviation") {
  Tensor x = stack({full({2, 2}, 3), full({2, 2}, 10)});
  CHECK(pixels(data::normalise(x, {1, 4}, {2, 3})) == Pixels{1, 1, 1, 1, 2, 2, 2, 2});
  CHECK(pixels(data::normalise(stack({x, x}), {3}, {7})) == Pixels{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("transforms record nothing and refuse what is no image") {
  Tape tape;
  Tensor x = image();
  tape.watch(x);
  CHECK_THROWS_AS(tape.backward(sum(data::normalise(x, {0}, {1}))), Error);
  Generator generator;
  CHECK_THAT(error_of<ShapeError>([] {
               data::shift(ones({3, 3}), 1, 1);
             }),
             contains("data::shift: x, (3, 3) f32, must be images") && contains("image_test.cpp:"));
  CHECK_THAT(error_of<Error>([] { data::horizontal_flip(Tensor{}); }), contains("undefined"));
  CHECK_THAT(error_of<DTypeError>([] { data::rotate(ones({1, 2, 2}, {.dtype = boolean}), 3); }), contains("bool"));
  CHECK_THAT(error_of<Error>([] { data::rotate(ones({1, 2, 2}), std::nan("")); }), contains("the angle is nan"));
  CHECK_THAT(error_of<Error>([&] {
               data::random_shift(ones({1, 2, 2}), generator, {.most = -1});
             }),
             contains("most is -1"));
  CHECK_THAT(error_of<Error>([&] {
               data::random_rotation(ones({1, 2, 2}), generator, {.most = -1});
             }),
             contains("most is -1"));
  CHECK_THAT(error_of<Error>([&] {
               data::random_horizontal_flip(ones({1, 2, 2}), generator, {.probability = 2});
             }),
             contains("the probability is 2"));
  CHECK_THAT(error_of<ShapeError>([] {
               data::normalise(ones({2, 2, 2}), {1, 2, 3}, {1});
             }),
             contains("3 means for 2 channels"));
  CHECK_THAT(error_of<Error>([] { data::normalise(ones({2, 2, 2}), {1}, {0}); }), contains("a deviation is 0"));
  CHECK_THAT(error_of<DTypeError>([] {
               data::normalise(ones({2, 2, 2}, {.dtype = u8}), {1}, {1});
             }),
             contains("floating"));
}
