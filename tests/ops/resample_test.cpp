#include <reel/reel.h>

#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/numbers.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("interpolation of known signals") {
  Tensor x = reshape(tensor({1.0, 2.0, 4.0}), {1, 1, 3});
  auto to_six = [&](Interpolation mode, bool align_corners = false) {
    return values_of(interpolate(x, {.size = {6}, .mode = mode, .align_corners = align_corners}));
  };
  CHECK(to_six(Interpolation::nearest) == std::vector<double>{1, 1, 2, 2, 4, 4});
  CHECK(to_six(Interpolation::linear) == std::vector<double>{1, 1.25, 1.75, 2.5, 3.5, 4});
  CHECK(to_six(Interpolation::area) == std::vector<double>{1, 1, 2, 2, 4, 4});
  std::vector<double> aligned = to_six(Interpolation::linear, true);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(aligned[i] == Approx(i < 3 ? 1 + 0.4 * static_cast<double>(i) : 2 + 0.8 * (static_cast<double>(i) - 2.5)));
  CHECK(values_of(interpolate(x, {.size = {3}, .mode = Interpolation::cubic})) == std::vector<double>{1, 2, 4});
  CHECK(values_of(interpolate(x, {.size = {1}, .mode = Interpolation::area}))[0] == Approx(7.0 / 3));
  CHECK(values_of(interpolate(x, {.size = {1}, .mode = Interpolation::linear, .align_corners = true}))[0] == 1);
  // 3 · 1.5 = 4.5 gives 4 elements, 1 / 1.5 apart.
  CHECK(values_of(interpolate(x, {.scale = 1.5})) == std::vector<double>{1, 1, 2, 4});
}

TEST_CASE("fold adds up what unfold takes apart") {
  Tensor x = reshape(arange(24, {.dtype = f64}), {1, 1, 4, 6});
  UnfoldOptions apart{.stride = {2, 3}};
  CHECK(values_of(fold(unfold(x, {2, 3}, apart), {4, 6}, {2, 3}, apart)) == values_of(x));
  std::vector<double> covers = values_of(fold(unfold(ones_like(x), 3, {.padding = 1}), {4, 6}, 3, {.padding = 1}));
  CHECK(covers[0] == 4);
  CHECK(covers[1] == 6);
  CHECK(covers[7] == 9);
}

TEST_CASE("resampling says what it cannot do") {
  Tensor u, x = ones({2, 3, 4}), image = ones({1, 2, 5, 5}), ints = tensor({{1, 2}, {3, 4}});
  all_fail<Error>({
      Bad("interpolate: an operand is an undefined tensor", [&] { interpolate(u, {.scale = 2}); }),
      Bad("unfold: an operand is an undefined tensor", [&] { unfold(u, 2); }),
      Bad("fold: an operand is an undefined tensor", [&] { fold(u, 2, 2); }),
      Bad("interpolate: wants either a size or a scale", [&] { interpolate(x, {}); }),
      Bad("interpolate: wants either a size or a scale", [&] { interpolate(x, {.size = {3}, .scale = 2}); }),
      Bad("interpolate: the scale is -1, not above 0", [&] { interpolate(x, {.scale = -1}); }),
      Bad("interpolate: the scale is nan, not above 0", [&] { interpolate(x, {.scale = std::nan("")}); }),
      Bad("interpolate: corners are aligned only by linear and cubic interpolation",
          [&] { interpolate(x, {.scale = 2, .align_corners = true}); }),
      Bad("unfold: kernel 0, dilation 1, stride 1 must lie in [1, 2^31], padding 0 in [0, 2^31]",
          [&] { unfold(image, 0); }),
      Bad("unfold: kernel 2, dilation 1, stride 0 must lie", [&] { unfold(image, 2, {.stride = 0}); }),
      Bad("unfold: kernel 2, dilation -1, stride 1 must lie", [&] { unfold(image, 2, {.dilation = -1}); }),
      Bad("unfold: kernel 9223372036854775807, dilation 1", [&] { unfold(image, huge); }),
      Bad("fold: kernel 2, dilation 1, stride 1 must lie in [1, 2^31], padding -1",
          [&] {
            fold(ones({1, 8, 16}), 5, 2, {.padding = -1});
          }),
  });
  all_fail<DTypeError>({
      Bad("interpolate: takes a floating tensor, not (2, 2) i32", [&] { interpolate(ints, {.scale = 2}); }),
      Bad("unfold: takes a floating tensor, not (2, 2) i32", [&] { unfold(ints, 2); }),
      Bad("fold: takes a floating tensor, not (2, 2) i32", [&] { fold(ints, 2, 2); }),
  });
  all_fail<ShapeError>({
      Bad("interpolate: takes (N, C, d…) with 1 to 3 axes d…, not (2, 3) f32",
          [&] {
            interpolate(ones({2, 3}), {.scale = 2});
          }),
      Bad("interpolate: (2, 3, 4) f32 has 1 axes to resize, but the new size is (2, 2)",
          [&] {
            interpolate(x, {.size = {2, 2}});
          }),
      Bad("interpolate: cannot bring axis 2 of (2, 3, 4) f32 to 0 elements", [&] { interpolate(x, {.size = {0}}); }),
      Bad("interpolate: cannot bring axis 2 of (2, 3, 4) f32 to 0 elements", [&] { interpolate(x, {.scale = 0.1}); }),
      Bad("interpolate: cannot bring axis 2 of (2, 3, 4) f32 to", [&] { interpolate(x, {.scale = 1e300}); }),
      Bad("interpolate: cannot bring axis 2 of (2, 3, 0) f32 to 3 elements",
          [&] {
            interpolate(ones({2, 3, 0}), {.size = {3}});
          }),
      Bad("unfold: takes images (N, C, H, W) or (C, H, W), not (2,) f32", [&] { unfold(ones({2}), 2); }),
      Bad("unfold: no patch of 6 elements, 1 apart, fits into 5 with padding 0", [&] { unfold(image, 6); }),
      Bad("fold: takes patches (N, C kh kw, L) or (C kh kw, L), not (2,) f32", [&] { fold(ones({2}), 5, 2); }),
      Bad("fold: (1, 7, 16) f32 has no whole number of channels for patches of 4 elements",
          [&] {
            fold(ones({1, 7, 16}), 5, 2);
          }),
      Bad("fold: an image of 5 x 5 has 16 patches, not the last size of (1, 8, 15) f32",
          [&] {
            fold(ones({1, 8, 15}), 5, 2);
          }),
      Bad("fold: no patch of 2 elements, 1 apart, fits into 0 with padding 0",
          [&] {
            fold(ones({1, 4, 1}), 0, 2);
          }),
  });
}

}  // namespace reel_test
