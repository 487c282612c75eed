#include <reel/reel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

// Moves the channels of x to the end, and back.
Tensor channels_last(const Tensor& x) { return permute(x, {0, 2, 3, 1}); }
Tensor channels_first(const Tensor& x) { return permute(x, {0, 3, 1, 2}); }

// Pads the last two axes of x with `number`, as TensorFlow's `same`.
Tensor padded_same(const Tensor& x, std::int64_t window, std::int64_t stride, double number) {
  std::int64_t rows = x.size(2), columns = x.size(3);
  auto lacking = [=](std::int64_t size) {
    std::int64_t results = (size + stride - 1) / stride;
    return std::max<std::int64_t>((results - 1) * stride + window - size, 0);
  };
  Tensor whole =
      full({x.size(0), x.size(1), rows + lacking(rows), columns + lacking(columns)}, number, {.dtype = x.dtype()});
  Tensor inside = slice(slice(whole, 2, lacking(rows) / 2, lacking(rows) / 2 + rows), 3, lacking(columns) / 2,
                        lacking(columns) / 2 + columns);
  copy_(inside, x);
  return whole;
}

bool equal_arrays(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::ranges::equal(array_of(a).values, array_of(b).values,
                            [](double one, double two) { return one == two || (std::isnan(one) && std::isnan(two)); });
}

double tolerance(DType dtype) { return dtype == bf16 ? 1e-2 : dtype == f16 ? 1e-3 : dtype == f32 ? 1e-6 : 1e-15; }

// The largest of each window of x (examples, channels, rows, columns), and its index: the first of equal ones, or any
// NaN. `flat`: windows along columns only.
void check_largest(const Tensor& x, const Tensor& values, const Tensor& indices, std::int64_t window, bool flat,
                   const MaxPoolOptions& options) {
  std::vector<double> numbers = array_of(x).values, found = array_of(values).values, places = array_of(indices).values;
  std::int64_t sizes[] = {x.size(2), x.size(3)}, stride = options.stride.given()[0];
  std::int64_t padding = options.padding.numbers().given()[0], dilation = options.dilation.given()[0];
  std::size_t o = 0, wrong = 0;
  for (std::int64_t plane = 0; plane < x.size(0) * x.size(1); ++plane)
    for (std::int64_t row = 0; row < values.size(2); ++row)
      for (std::int64_t column = 0; column < values.size(3); ++column, ++o) {
        std::int64_t best = -1;
        bool nan = false;
        auto at = [&](std::int64_t place) {
          return numbers[static_cast<std::size_t>(plane * sizes[0] * sizes[1] + place)];
        };
        for (std::int64_t n = 0; n < (flat ? window : window * window); ++n) {
          std::int64_t i = flat ? row : row * stride - padding + n / window * dilation;
          std::int64_t j = column * stride - padding + n % window * dilation;
          if (i < 0 || j < 0 || i >= sizes[0] || j >= sizes[1]) continue;
          nan = nan || std::isnan(at(i * sizes[1] + j));
          if (best < 0 || at(i * sizes[1] + j) > at(best)) best = i * sizes[1] + j;
        }
        auto place = static_cast<std::int64_t>(places[o]);
        wrong += nan ? !std::isnan(found[o]) || !std::isnan(at(place)) : found[o] != at(best) || place != best;
      }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("pooling has TensorFlow's sizes for same and valid, and its numbers, in each layout") {
  manual_seed(5);
  for (std::int64_t size : {5, 6, 7, 8})
    for (std::int64_t window : {1, 2, 3, 4})
      for (std::int64_t stride : {1, 2, 3}) {
        CAPTURE(size, window, stride);
        Tensor x = randn({2, 3, size, size + 1}, {.dtype = f64});
        auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
        Shape same{2, 3, up(size, stride), up(size + 1, stride)},
            valid{2, 3, up(size - window + 1, stride), up(size - window + 2, stride)};
        AveragePoolOptions average{.stride = stride, .padding = Padding::same};
        MaxPoolOptions most{.stride = stride, .padding = Padding::same};
        Tensor a = avg_pool2d(x, window, average), m = max_pool2d(x, window, most);
        CHECK(a.shape() == same);
        CHECK(m.shape() == same);
        Tensor around = padded_same(x, window, stride, -HUGE_VAL);
        CHECK(equal_arrays(m, max_pool2d(around, window, {.stride = stride})));
        // The divisor excludes the zeros of the padding.
        Tensor sums = avg_pool2d(padded_same(x, window, stride, 0), window, {.stride = stride});
        Tensor shares = avg_pool2d(padded_same(ones_like(x), window, stride, 0), window, {.stride = stride});
        CHECK(debug::gradcheck([&](auto given) { return avg_pool2d(given[0], window, average); }, {slice(x, 1, 0, 1)})
                  .agrees);
        CHECK(array_of(max(abs(a - sums / shares))).values[0] < 1e-14);
        average.padding = most.padding = Padding::valid;
        CHECK(avg_pool2d(x, window, average).shape() == valid);
        CHECK(max_pool2d(x, window, most).shape() == valid);
        for (Padding padding : {Padding::same, Padding::valid}) {
          average.padding = most.padding = padding;
          average.layout = most.layout = Layout::nchw;
          Tensor first = avg_pool2d(x, window, average), largest = max_pool2d(x, window, most);
          average.layout = most.layout = Layout::nhwc;
          CHECK(array_of(max(abs(channels_first(avg_pool2d(channels_last(x), window, average)) - first))).values[0] <
                1e-14);
          CHECK(equal_arrays(channels_first(max_pool2d(channels_last(x), window, most)), largest));
        }
      }
}

TEST_CASE("in ceil_mode the last window starts within x or the padding before it") {
  auto results = [](std::int64_t size, std::int64_t window, const MaxPoolOptions& options) {
    return max_pool1d(zeros({1, 1, size}), window, options).size(2);
  };
  CHECK(results(5, 2, {}) == 2);
  CHECK(results(5, 2, {.ceil_mode = true}) == 3);
  CHECK(results(5, 2, {.stride = 3, .ceil_mode = true}) == 2);
  CHECK(results(4, 2, {.stride = 3, .ceil_mode = true}) == 2);
  CHECK(results(6, 2, {.stride = 4, .padding = 1, .ceil_mode = true}) == 2);
  CHECK(results(3, 2, {.padding = 1, .ceil_mode = true}) == 2);
  // Windows that are cut off divide by their elements in x and its padding.
  Tensor y = avg_pool1d(ones({1, 1, 5}), 2, {.ceil_mode = true});
  CHECK(y.to_vector<float>() == std::vector<float>{1, 1, 1});
  Tensor padded = avg_pool1d(ones({1, 1, 3}), 2, {.padding = 1}),
         left_out = avg_pool1d(ones({1, 1, 3}), 2, {.padding = 1, .count_include_pad = false});
  CHECK(padded.to_vector<float>() == std::vector<float>{0.5, 1});
  CHECK(left_out.to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("the largest of a window is NaN if one is, and the first of equal ones") {
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (Layout layout : {Layout::nchw, Layout::nhwc}) {
    auto laid_out = [&](const Tensor& x) { return layout == Layout::nhwc ? channels_last(x) : x; };
    Tensor x = reshape(tensor({not_a_number, 1.0, -HUGE_VAL, -HUGE_VAL, 2.0, 0.0, -HUGE_VAL, -HUGE_VAL}), {1, 1, 2, 4});
    Array y = array_of(max_pool2d(laid_out(x), 2, {.layout = layout}));
    CHECK(std::isnan(y.values[0]));
    CHECK(y.values[1] == -HUGE_VAL);
    Tensor ties = reshape(tensor({0.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0}), {1, 1, 2, 4});
    auto [values, indices] = max_pool2d_with_indices(laid_out(ties), {2, 4}, {.layout = layout});
    CHECK(indices.item<std::int64_t>() == 1);
    CHECK(max_pool2d_with_indices(laid_out(flip(ties, {2})), {2, 4}, {.layout = layout}).indices.item<std::int64_t>() ==
          5);
    Tape tape;
    tape.watch(ties);
    Tensor d = tape.gradient(max_pool2d(laid_out(ties), {2, 4}, {.layout = layout}), ties);
    CHECK(d.to_vector<double>() == std::vector<double>{0, 1, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("windows of 2 x 2 side by side have the first of equal numbers, or a NaN, for every width") {
  manual_seed(7);
  for (DType dtype : {f32, f64})
    for (std::int64_t width = 2; width < 70; ++width) {
      std::int64_t height = 2 + width % 4;
      CAPTURE(width, height);
      // Few distinct values, so that many are equal; one in sixteen is NaN.
      Tensor drawn = to(randint(0, 16, {2, 3, height, width}), dtype);
      Tensor x = where(drawn == 15, full(drawn.shape(), NAN, {.dtype = dtype}), drawn);
      auto [values, indices] = max_pool2d_with_indices(x, 2);
      REQUIRE(values.shape() == Shape{2, 3, height / 2, width / 2});
      std::vector<double> numbers = array_of(x).values, found = array_of(values).values;
      std::vector<double> places = array_of(indices).values;
      bool right = true;
      for (std::size_t o = 0; o < found.size(); ++o) {
        auto i = static_cast<std::int64_t>(o), plane = i / (height / 2 * (width / 2));
        std::int64_t row = i / (width / 2) % (height / 2), column = i % (width / 2);
        std::int64_t first = 2 * row * width + 2 * column, best = first;
        auto at = [&](std::int64_t place) { return numbers[static_cast<std::size_t>(plane * height * width + place)]; };
        for (std::int64_t place : {first, first + 1, first + width, first + width + 1})
          if (at(place) > at(best) || (std::isnan(at(place)) && !std::isnan(at(best)))) best = place;
        if (std::isnan(at(best)))
          right = right && std::isnan(found[o]) && std::isnan(at(static_cast<std::int64_t>(places[o])));
        else
          right = right && found[o] == at(best) && static_cast<std::int64_t>(places[o]) == best;
      }
      CHECK(right);
    }
}

TEST_CASE("the largest of windows of any length, distance and dilation is found, with its index and without") {
  manual_seed(8);
  std::int64_t cases = 0;
  for (int draw = 0; cases < 150; ++draw) {
    std::vector<std::int64_t> drawn = randint(0, 1 << 20, {6}, {.dtype = i64}).to_vector<std::int64_t>();
    std::int64_t width = 1 + drawn[0] % 90, height = 1 + drawn[1] % 9, window = 1 + drawn[2] % 5;
    std::int64_t dilation = 1 + drawn[4] % 3, extent = (window - 1) * dilation + 1,
                 padding = drawn[5] % (extent / 2 + 1);
    MaxPoolOptions options{.stride = 1 + drawn[3] % 6, .padding = padding, .dilation = dilation};
    if (extent > std::min(width, height) + 2 * padding || (padding > 0 && dilation > std::min(width, height))) continue;
    ++cases;
    for (DType dtype : {f32, f64, bf16, f16}) {
      CAPTURE(draw, width, height, window, drawn[3] % 6 + 1, dilation, padding, dtype);
      // Few distinct values, so that many are equal; -inf and NaN among them.
      Tensor steps = to(randint(0, 24, {2, 2, height, width}), dtype);
      auto all = [&](double number) { return full(steps.shape(), number, {.dtype = dtype}); };
      Tensor x = where(steps == 23, all(NAN), where(steps < 8, all(-HUGE_VAL), steps));
      auto [values, indices] = max_pool2d_with_indices(x, window, options);
      check_largest(x, values, indices, window, false, options);
      CHECK(equal_arrays(max_pool2d(x, window, options), values));
      options.layout = Layout::nhwc;
      CHECK(equal_arrays(channels_first(max_pool2d(channels_last(x), window, options)), values));
      options.layout = Layout::nchw;
      Tensor lines = reshape(x, {4, height, width});
      auto [most, places] = max_pool1d_with_indices(lines, window, options);
      CHECK(equal_arrays(max_pool1d(lines, window, options), most));
      check_largest(unsqueeze(lines, 2), unsqueeze(most, 2), places, window, true, options);
    }
  }
}

TEST_CASE("the largest of windows of long rows is found, with its index and without") {
  manual_seed(9);
  for (std::int64_t width : {1000, 1024, 1025, 2047, 5000})
    for (auto [window, stride, padding, dilation] : std::vector<std::array<std::int64_t, 4>>{{2, 2, 0, 1},
                                                                                             {3, 1, 0, 1},
                                                                                             {3, 1, 1, 1},
                                                                                             {3, 2, 1, 1},
                                                                                             {7, 3, 3, 5},
                                                                                             {600, 1, 300, 1},
                                                                                             {900, 40, 17, 1},
                                                                                             {130, 1100, 0, 1},
                                                                                             {2, 1, 1, 700}}) {
      MaxPoolOptions options{.stride = stride, .padding = padding, .dilation = dilation};
      for (DType dtype : {f32, bf16}) {
        CAPTURE(width, window, stride, padding, dilation, dtype);
        Tensor steps = to(randint(0, 900, {3, 2, width}), dtype), all = full(steps.shape(), NAN, {.dtype = dtype});
        Tensor x = where(steps == 23.0, all, where(steps < 300.0, full({}, -HUGE_VAL, {.dtype = dtype}), steps));
        auto [most, places] = max_pool1d_with_indices(x, window, options);
        CHECK(equal_arrays(max_pool1d(x, window, options), most));
        check_largest(unsqueeze(x, 2), unsqueeze(most, 2), unsqueeze(places, 2), window, true, options);
      }
    }
}

TEST_CASE("gradients of the largest are those of its index, though a call without a tape has no indices") {
  manual_seed(9);
  Tensor x = randn({2, 3, 37}, {.dtype = f64});
  MaxPoolOptions options{.stride = 2, .padding = 1};
  Tensor apart = max_pool1d(x, 3, options), d = randn(apart.shape(), {.dtype = f64});
  auto [values, indices] = max_pool1d_with_indices(x, 3, options);
  Tape tape;
  tape.watch(x);
  Tensor recorded = max_pool1d(x, 3, options);
  CHECK(equal_arrays(recorded, apart));
  CHECK(equal_arrays(tape.gradient(sum(recorded * d), x), scatter_add(zeros_like(x), 2, indices, d)));
}

TEST_CASE("the average of a whole plane is that of its elements") {
  manual_seed(10);
  for (DType dtype : {f32, f64, bf16, f16})
    for (std::int64_t size : {1, 7, 33, 70}) {
      CAPTURE(size, dtype);
      Tensor x = randn({2, 3, size, size + 1}, {.dtype = dtype});
      Array y = array_of(adaptive_avg_pool2d(x, 1)), expected = array_of(mean(to(x, f64), {2, 3}));
      for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(y.values[i] - expected.values[i]) <= tolerance(dtype));
      CHECK(equal_arrays(avg_pool2d(x, {size, size + 1}), adaptive_avg_pool2d(x, 1)));
    }
}

TEST_CASE("averages and largest numbers of short rows have the bits among many that they have alone") {
  constexpr std::uint64_t seed = 11;
  CAPTURE(seed);
  manual_seed(seed);
  for (DType dtype : {f32, f64, bf16})
    for (std::int64_t width : {1, 3, 5, 16, 31, 32, 33})
      for (std::int64_t padding : {0, 1}) {
        std::int64_t window = std::min<std::int64_t>(width, 3);
        if (2 * padding > window) continue;
        CAPTURE(name_of(dtype), width, padding);
        Tensor x = randn({41, 1, width}, {.dtype = dtype});
        AveragePoolOptions options{.stride = 2, .padding = padding};
        Tensor y = avg_pool1d(where(x > 2.5, 0.0, x), window, options);
        x = where(x > 2.5, NAN, x);  // one in a hundred
        Tensor most = max_pool1d(x, window, {.stride = 2, .padding = padding}),
               apart = max_pool1d(x, window, {.stride = 3, .padding = padding});
        for (std::int64_t i = 0; i < 41; ++i) {
          Tensor row = slice(x, 0, i, i + 1);
          CHECK(equal_arrays(slice(y, 0, i, i + 1), avg_pool1d(where(row == row, row, 0.0), window, options)));
          CHECK(equal_arrays(slice(most, 0, i, i + 1), max_pool1d(row, window, {.stride = 2, .padding = padding})));
          CHECK(equal_arrays(slice(apart, 0, i, i + 1), max_pool1d(row, window, {.stride = 3, .padding = padding})));
        }
        x = where(x == x, x, 0.0);
        Tensor adaptive = adaptive_avg_pool1d(x, window);
        CHECK(equal_arrays(slice(adaptive, 0, 40), adaptive_avg_pool1d(slice(x, 0, 40), window)));
      }
}

TEST_CASE("windows, strides and paddings may differ between axes") {
  Tensor x = reshape(arange(24, {.dtype = f64}), {1, 1, 4, 6});
  auto [values, indices] = max_pool2d_with_indices(x, {2, 3}, {.stride = {2, 1}, .dilation = {1, 2}});
  CHECK(values.shape() == Shape{1, 1, 2, 2});
  CHECK(indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{10, 11, 22, 23});
  CHECK(avg_pool2d(x, {4, 1}).to_vector<double>() == std::vector<double>{9, 10, 11, 12, 13, 14});
  CHECK(adaptive_avg_pool2d(x, {1, 2}).to_vector<double>() == std::vector<double>{10, 13});
  CHECK(adaptive_max_pool2d(x, {3, 4}).shape() == Shape{1, 1, 3, 4});
}

TEST_CASE("gradients of pooling can be differentiated to third order") {
  manual_seed(6);
  Tensor x = randn({1, 2, 5, 5}, {.dtype = f64});
  for (const Function& f : {Function([](auto x) { return max_pool2d(x[0], 3, {.stride = 2, .padding = 1}); }),
                            Function([](auto x) { return avg_pool2d(x[0], 3, {.stride = 2, .padding = 1}); })}) {
    auto cube_of_gradient = [&](auto given) {
      Tape tape;
      tape.watch(given[0]);
      Tensor y = f(given);
      return tape.gradient(sum(y * y * y), given[0]);
    };
    CHECK(debug::gradgradcheck(cube_of_gradient, {x}).agrees);
  }
}

TEST_CASE("unpooling puts what windows that overlap have in common there once") {
  Tensor x = reshape(tensor({1.0, 2.0, 5.0, 3.0, 4.0}), {1, 1, 5});
  auto [values, indices] = max_pool1d_with_indices(x, 3, {.stride = 1});
  CHECK(indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 2, 2});
  Tape tape;
  tape.watch(values);
  Tensor y = max_unpool1d(values, indices, 5);
  CHECK(y.to_vector<double>() == std::vector<double>{0, 0, 5, 0, 0});
  CHECK(tape.gradient(sum(y), values).to_vector<double>() == std::vector<double>{0, 0, 1});
  CHECK(max_unpool1d(values, to(indices - 5, i32), 5).to_vector<double>() == y.to_vector<double>());
  // Without overlap, unpooling restores the largest element of each window.
  manual_seed(7);
  for (Layout layout : {Layout::nchw, Layout::nhwc}) {
    Tensor given = randn({2, 4, 4, 6}), other = layout == Layout::nhwc ? channels_last(given) : given;
    auto [largest, places] = max_pool2d_with_indices(other, 2, {.layout = layout});
    Tensor back = max_unpool2d(largest, places, {4, 6}, {.layout = layout});
    CHECK(array_of(max(abs(where(back == 0, other, back) - other))).values[0] == 0);
    CHECK(array_of(sum(to(back != 0, f32))).values[0] == 48);
  }
}

TEST_CASE("bad pooling is refused by name") {
  Tensor u, x1 = zeros({1, 2, 5}), x2 = zeros({1, 2, 5, 4}), x3 = zeros({1, 2, 5, 4, 3}), none = zeros({1, 2, 0}),
            ints = zeros({1, 2, 5}, {.dtype = i32}), row = zeros({5}), places = zeros({1, 2, 5}, {.dtype = i64});
  auto layout = static_cast<Layout>(9);
  all_fail<Error>({
      Bad("max_pool1d: an operand is an undefined tensor", [&] { max_pool1d(u, 2); }),
      Bad("avg_pool2d: an operand is an undefined tensor", [&] { avg_pool2d(u, 2); }),
      Bad("adaptive_avg_pool3d: an operand is an undefined tensor", [&] { adaptive_avg_pool3d(u, 2); }),
      Bad("max_unpool1d: an operand is an undefined tensor", [&] { max_unpool1d(u, places, 5); }),
      Bad("max_unpool1d: an operand is an undefined tensor", [&] { max_unpool1d(x1, u, 5); }),
      Bad("max_unpool1d: there is no layout of the number 9", [&] { max_unpool1d(x1, places, 5, {.layout = layout}); }),
      Bad("max_pool3d: there is no layout of the number 9", [&] { max_pool3d(x3, 2, {.layout = layout}); }),
  });
  all_fail<DTypeError>({
      Bad("max_pool1d: ", [&] { max_pool1d(ints, 2); }),
      Bad("avg_pool1d: ", [&] { avg_pool1d(ints, 2); }),
      Bad("adaptive_max_pool1d: ", [&] { adaptive_max_pool1d(ints, 2); }),
      Bad("max_pool1d: ", [&] { max_pool1d(1.0, 2); }),
      Bad("max_unpool1d: ", [&] { max_unpool1d(ints, places, 5); }),
      Bad("max_unpool1d: indices are i32 or i64, not (1, 2, 5) f32", [&] { max_unpool1d(x1, x1, 5); }),
  });
  all_fail<IndexError>({
      Bad("max_unpool1d: index 5 is out of range for the 5 places of a result (1, 2, 5)",
          [&] { max_unpool1d(x1, places + 5, 5); }),
      Bad("max_unpool1d: index -6 is out of range for the 5 places", [&] { max_unpool1d(x1, places - 6, 5); }),
      Bad("max_unpool1d: index 4611686018427387904 is out of range",
          [&] { max_unpool1d(x1, places + huge / 2 + 1, 5); }),
  });
  const std::string rest = " must have rank ";
  all_fail<ShapeError>({
      Bad("max_pool1d: x (5,) f32" + rest + "3: examples, channels and 1 spatial axis", [&] { max_pool1d(row, 2); }),
      Bad("max_pool2d: x (1, 2, 5) f32" + rest + "4", [&] { max_pool2d(x1, 2); }),
      Bad("max_pool3d: x (1, 2, 5, 4) f32" + rest + "5", [&] { max_pool3d(x2, 2); }),
      Bad("max_pool1d_with_indices: x (5,) f32" + rest, [&] { max_pool1d_with_indices(row, 2); }),
      Bad("max_pool2d_with_indices: x (5,) f32" + rest, [&] { max_pool2d_with_indices(row, 2); }),
      Bad("max_pool3d_with_indices: x (5,) f32" + rest, [&] { max_pool3d_with_indices(row, 2); }),
      Bad("avg_pool1d: x (1, 2, 5, 4) f32" + rest, [&] { avg_pool1d(x2, 2); }),
      Bad("avg_pool2d: x (1, 2, 5) f32" + rest, [&] { avg_pool2d(x1, 2); }),
      Bad("avg_pool3d: x (1, 2, 5) f32" + rest, [&] { avg_pool3d(x1, 2); }),
      Bad("adaptive_avg_pool1d: x (5,) f32" + rest, [&] { adaptive_avg_pool1d(row, 2); }),
      Bad("adaptive_avg_pool2d: x (5,) f32" + rest, [&] { adaptive_avg_pool2d(row, 2); }),
      Bad("adaptive_avg_pool3d: x (5,) f32" + rest, [&] { adaptive_avg_pool3d(row, 2); }),
      Bad("adaptive_max_pool1d: x (5,) f32" + rest, [&] { adaptive_max_pool1d(row, 2); }),
      Bad("adaptive_max_pool2d: x (5,) f32" + rest, [&] { adaptive_max_pool2d(row, 2); }),
      Bad("adaptive_max_pool3d: x (5,) f32" + rest, [&] { adaptive_max_pool3d(row, 2); }),
      Bad("adaptive_max_pool1d_with_indices: x (5,) f32" + rest, [&] { adaptive_max_pool1d_with_indices(row, 2); }),
      Bad("adaptive_max_pool2d_with_indices: x (5,) f32" + rest, [&] { adaptive_max_pool2d_with_indices(row, 2); }),
      Bad("adaptive_max_pool3d_with_indices: x (5,) f32" + rest, [&] { adaptive_max_pool3d_with_indices(row, 2); }),
      Bad("max_unpool2d: x (5,) f32" + rest, [&] { max_unpool2d(row, places, 2); }),
      Bad("max_unpool3d: x (5,) f32" + rest, [&] { max_unpool3d(row, places, 2); }),
      Bad("max_unpool1d: the indices (1, 2, 5) do not have the shape of x (1, 2, 3) f32",
          [&] { max_unpool1d(slice(x1, 2, 0, 3), places, 9); }),
      Bad("max_unpool1d: sizes (0,) must be at least 1", [&] { max_unpool1d(x1, places, 0); }),
      Bad("max_unpool1d: sizes (2, 2) must be one number or one",
          [&] {
            max_unpool1d(x1, places, {2, 2});
          }),
      Bad("max_unpool2d: a result of shape (1, 2, 1073741824, 17179869184) has too many elements",
          [&] {
            max_unpool2d(x2, to(x2, i64), {std::int64_t{1} << 30, std::int64_t{1} << 34});
          }),
      Bad("max_pool1d: x (1, 2, 0) f32 has no elements along spatial axis 0", [&] { max_pool1d(none, 1); }),
      Bad("adaptive_avg_pool1d: x (1, 2, 0) f32 has no elements", [&] { adaptive_avg_pool1d(none, 1); }),
      Bad("adaptive_max_pool1d: results (0,) must be at least 1", [&] { adaptive_max_pool1d(x1, 0); }),
      Bad("max_pool2d: window (1, 2, 3) must be one number or one for each of 2 spatial axes",
          [&] {
            max_pool2d(x2, {1, 2, 3});
          }),
      Bad("max_pool1d: window (0,) must be at least 1", [&] { max_pool1d(x1, 0); }),
      Bad("max_pool1d: window", [&] { max_pool1d(x1, huge); }),
      Bad("max_pool1d: stride (-1,) must be at least 0", [&] { max_pool1d(x1, 2, {.stride = -1}); }),
      Bad("max_pool1d: dilation (0,) must be at least 1", [&] { max_pool1d(x1, 2, {.dilation = 0}); }),
      Bad("max_pool1d: a window of 1000 with dilation 576460752303423488 goes beyond any size",
          [&] { max_pool1d(x1, 1000, {.dilation = huge / 16 + 1}); }),
      Bad("max_pool1d: padding 2 is more than half of the window, which spans 3",
          [&] { max_pool1d(x1, 3, {.padding = 2}); }),
      Bad("avg_pool1d: the window spans 6 elements along spatial axis 0, but x (1, 2, 5) f32 has 5 there",
          [&] { avg_pool1d(x1, 6); }),
      Bad("max_pool1d: window 0 along spatial axis 0 meets no element of x",
          [&] { max_pool1d(slice(x1, 2, 0, 2), 2, {.padding = 3, .dilation = 5}); }),
  });
}

}  // namespace reel_test
