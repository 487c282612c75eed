#include <reel/reel.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "ops/bad_input.h"
#include "ops/table/table.h"
#include "thread_scope.h"

namespace reel_test {

using namespace reel;

namespace {

Tensor of(const Shape& shape, DType dtype = f32) { return ones(shape, {.dtype = dtype}); }

Tensor conv(int axes, const Tensor& x, const Tensor& w, const ConvolutionOptions& options) {
  return axes == 1 ? conv1d(x, w, options) : axes == 2 ? conv2d(x, w, options) : conv3d(x, w, options);
}

Tensor conv_transposed(int axes, const Tensor& x, const Tensor& w, const TransposedConvolutionOptions& options) {
  return axes == 1   ? conv_transposed1d(x, w, options)
         : axes == 2 ? conv_transposed2d(x, w, options)
                     : conv_transposed3d(x, w, options);
}

Tensor channels_last(const Tensor& x) {
  Shape order{0};
  for (int axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return contiguous(permute(x, order));
}

// The results, and the gradients of x and w for an output gradient that is not constant.
std::vector<Tensor> with_gradients(const std::function<Tensor(const Tensor&, const Tensor&)>& f, const Tensor& x,
                                   const Tensor& w) {
  Tape tape;
  tape.watch(x);
  tape.watch(w);
  Tensor y = f(x, w);
  Tensor d = reshape(sin(arange(y.numel(), {.dtype = y.dtype()})), y.shape());
  std::vector<Tensor> all = tape.gradient(y, std::vector<Tensor>{x, w}, {.seed = d});
  all.push_back(stop_gradient(y));
  return all;
}

// A convolution over two axes of contiguous f64, and the gradients of x and w, by plain loops over all products.
struct PlainConvolution {
  std::vector<double> y, dx, dw;

  PlainConvolution(const Tensor& x, const Tensor& w, const Tensor& d, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation)
      : y(static_cast<std::size_t>(d.numel())),
        dx(static_cast<std::size_t>(x.numel())),
        dw(static_cast<std::size_t>(w.numel())) {
    std::vector<double> xs = x.to_vector<double>(), ws = w.to_vector<double>(), ds = d.to_vector<double>();
    Shape in = x.shape(), window = w.shape(), out = d.shape();
    auto at = [](const Shape& shape, std::int64_t a, std::int64_t b, std::int64_t i, std::int64_t j) {
      return static_cast<std::size_t>(((a * shape[1] + b) * shape[2] + i) * shape[3] + j);
    };
    for (std::int64_t n = 0; n < out[0]; ++n)
      for (std::int64_t i = 0; i < out[2]; ++i)
        for (std::int64_t j = 0; j < out[3]; ++j)
          for (std::int64_t u = 0; u < window[2]; ++u)
            for (std::int64_t v = 0; v < window[3]; ++v) {
              std::int64_t row = i * stride + u * dilation - padding, column = j * stride + v * dilation - padding;
              if (row < 0 || row >= in[2] || column < 0 || column >= in[3]) continue;
              for (std::int64_t o = 0; o < out[1]; ++o)
                for (std::int64_t c = 0; c < in[1]; ++c) {
                  std::size_t of_y = at(out, n, o, i, j), of_x = at(in, n, c, row, column),
                              of_w = at(window, o, c, u, v);
                  y[of_y] += xs[of_x] * ws[of_w];
                  dx[of_x] += ds[of_y] * ws[of_w];
                  dw[of_w] += ds[of_y] * xs[of_x];
                }
            }
  }
};

void check_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  std::vector<double> numbers = to(found, f64).to_vector<double>();
  REQUIRE(numbers.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) worst = std::max(worst, std::abs(numbers[i] - expected[i]));
  CHECK(worst <= tolerance);
}

// A convolution of random normal numbers over two axes with a square window.
struct ConvolutionCase {
  std::int64_t examples, channels, results, height, width, window, stride, padding, dilation;
};

void check_products(const ConvolutionCase& one, DType dtype) {
  CAPTURE(one.channels, one.results, one.height, one.width, one.window, one.stride, one.padding, one.dilation, dtype);
  Tensor x = to(randn({one.examples, one.channels, one.height, one.width}), dtype),
         w = to(randn({one.results, one.channels, one.window, one.window}), dtype),
         bias = to(randn({one.results}), dtype);
  Tape tape;
  tape.watch(x);
  tape.watch(w);
  Tensor y = conv2d(x, w, bias, {.stride = one.stride, .padding = one.padding, .dilation = one.dilation});
  Tensor d = to(randn(y.shape()), dtype);
  std::vector<Tensor> gradients = tape.gradient(y, std::vector<Tensor>{x, w}, {.seed = d});
  PlainConvolution plain(to(stop_gradient(x), f64), to(stop_gradient(w), f64), to(d, f64), one.stride, one.padding,
                         one.dilation);
  // The error of a sum of n products of normal numbers is about √n roundings of numbers of size √n: here n is up to
  // 1,152, and f32's rounding 6·10⁻⁸, so 7·10⁻⁵; the largest of some thousand errors is up to five times that.
  double tolerance = dtype == f64 ? 1e-11 : 5e-4;
  check_near(stop_gradient(y) - reshape(bias, {one.results, 1, 1}), plain.y, tolerance);
  check_near(gradients[0], plain.dx, tolerance);
  check_near(gradients[1], plain.dw, tolerance);
}

}  // namespace

TEST_CASE("convolutions of short lines with many channels and their gradients are sums of all products") {
  manual_seed(1951);
  for (const ConvolutionCase& one : {ConvolutionCase{2, 64, 65, 7, 7, 3, 1, 1, 1},
                                     {1, 66, 64, 5, 9, 3, 2, 1, 1},
                                     {3, 64, 70, 8, 8, 3, 1, 0, 2},
                                     {2, 64, 64, 3, 8, 2, 1, 2, 1},
                                     {1, 65, 64, 12, 17, 3, 3, 2, 1},
                                     {1, 64, 64, 1, 1, 3, 1, 1, 1}})
    for (DType dtype : {f64, f32}) check_products(one, dtype);
}

// Tiles of the gradient by the weights then take several taps, and the last ones alone.
TEST_CASE("convolutions of few channels and their gradients are sums of all products") {
  manual_seed(1962);
  for (std::int64_t channels = 1; channels <= 8; ++channels)
    for (const ConvolutionCase& one : {ConvolutionCase{1, channels, 20, 30, 31, 7, 2, 3, 1},
                                       {1, channels, 20, 36, 40, 5, 1, 0, 1},
                                       {2, channels, 33, 13, 14, 3, 1, 2, 2},
                                       {1, channels, 17, 9, 8, 2, 3, 0, 1}})
      for (DType dtype : {f64, f32}) check_products(one, dtype);
}

TEST_CASE("same and valid padding give as many results as TensorFlow's formulas say, and its zeros") {
  for (int axes : {1, 2, 3})
    for (Layout layout : {Layout::nchw, Layout::nhwc})
      for (std::int64_t size : {1, 4, 5, 8})
        for (std::int64_t filter : {1, 2, 3, 4})
          for (std::int64_t stride : {1, 2, 3})
            for (std::int64_t dilation : {1, 2}) {
              CAPTURE(axes, static_cast<int>(layout), size, filter, stride, dilation);
              Shape plain{2, 1}, window{1, 1};
              for (int axis = 0; axis < axes; ++axis) {
                plain.push_back(size);
                window.push_back(filter);
              }
              Tensor x = rand(plain, {.dtype = f64}), w = rand(window, {.dtype = f64});
              Tensor laid_out = layout == Layout::nhwc ? channels_last(x) : x;
              ConvolutionOptions options{
                  .stride = stride, .padding = Padding::same, .dilation = dilation, .layout = layout};
              std::int64_t extent = (filter - 1) * dilation + 1, results = (size + stride - 1) / stride;
              Tensor y = conv(axes, laid_out, w, options);
              CHECK(y.size(layout == Layout::nhwc ? 1 : 2) == results);
              std::int64_t total = std::max<std::int64_t>((results - 1) * stride + extent - size, 0);
              std::vector<PadWidth> widths(2);
              for (int axis = 0; axis < axes; ++axis) widths.push_back({total / 2, total - total / 2});
              Tensor padded = pad(x, widths);
              Tensor expected = conv(axes, padded, w, {.stride = stride, .dilation = dilation});
              if (layout == Layout::nhwc) expected = channels_last(expected);
              CHECK(same_bits(y, expected));

              options.padding = Padding::valid;
              if (size < extent) {
                CHECK_THROWS_AS(conv(axes, laid_out, w, options), ShapeError);
                continue;
              }
              Tensor less = conv(axes, laid_out, w, options);
              CHECK(less.size(layout == Layout::nhwc ? 1 : 2) == (size - extent + 1 + stride - 1) / stride);
            }
}

TEST_CASE("with the channels last, convolutions and their gradients are those of the permuted tensors") {
  for (int axes : {1, 2, 3})
    for (DType dtype : {f32, f64, bf16, f16}) {
      CAPTURE(axes, reel::name_of(dtype));
      Shape shape{2, 6}, window{34, 3}, transposed_window{6, 17};
      for (int axis = 0; axis < axes; ++axis) {
        shape.push_back(7 - axis);
        window.push_back(3 - axis % 2);
        transposed_window.push_back(2 + axis % 2);
      }
      auto last = [](const Tensor& x) { return channels_last(x); };
      Tensor x = to(randn(shape), dtype), w = to(randn(window), dtype), v = to(randn(transposed_window), dtype);
      ConvolutionOptions options{.stride = 2, .padding = 1, .groups = 2};
      TransposedConvolutionOptions back{.stride = 2, .padding = 1, .output_padding = 1};
      for (bool transposed : {false, true}) {
        auto f = [&](const Tensor& a, const Tensor& b, Layout layout) {
          options.layout = back.layout = layout;
          return transposed ? conv_transposed(axes, a, b, back) : conv(axes, a, b, options);
        };
        const Tensor& weights = transposed ? v : w;
        auto first = with_gradients([&](auto& a, auto& b) { return last(f(a, b, Layout::nchw)); }, x, weights);
        auto second = with_gradients([&](auto& a, auto& b) { return f(last(a), b, Layout::nhwc); }, x, weights);
        for (std::size_t i = 0; i < first.size(); ++i) CHECK(same_bits(first[i], second[i]));
      }
    }
}

TEST_CASE("a transposed convolution is the gradient of a convolution, bit by bit") {
  Tensor x = randn({2, 6, 9, 8}), w = randn({8, 3, 3, 2});
  Tape tape;
  tape.watch(x);
  Tensor y = conv2d(x, w, {.stride = {2, 3}, .padding = 1, .groups = 2}), d = randn(y.shape());
  Tensor gradient = tape.gradient(y, x, {.seed = d});
  Tensor same = conv_transposed2d(d, w, {.stride = {2, 3}, .padding = 1, .output_padding = {0, 2}, .groups = 2});
  CHECK(same_bits(gradient, same));
}

TEST_CASE("strided and expanded operands of a convolution need no copy") {
  Tensor x = randn({4, 9, 3, 10}), w = randn({3, 4, 2, 3});
  Tensor transposed = transpose(x, 1, 2), weights = transpose(w, 0, 1);
  CHECK(same_bits(conv2d(transposed, weights), conv2d(contiguous(transposed), contiguous(weights))));
  Tensor wide = expand(randn({1, 3, 1, 10}), {4, 3, 9, 10});
  CHECK(same_bits(conv2d(wide, weights), conv2d(contiguous(wide), weights)));
}

TEST_CASE("NaN and infinity reach what they meet in a convolution, and nothing else") {
  for (double odd : {double(NAN), HUGE_VAL}) {
    Tensor x = ones({1, 1, 4, 20});
    x.write<float>()[3 * 20 + 19] = static_cast<float>(odd);
    Tensor y = conv2d(x, ones({1, 1, 2, 2}));
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 19; ++j) CHECK(std::isfinite(y(0, 0, i, j).item()) == !(i == 2 && j == 18));
    Tensor w = ones({2, 1, 2, 2});
    Tape tape;
    tape.watch(w);
    Tensor gradient = tape.gradient(sum(slice(conv2d(x, w), 1, 0, 1)), w);
    for (std::int64_t k = 0; k < 4; ++k) CHECK(std::isfinite(gradient(0, 0, k / 2, k % 2).item()) == (k != 3));
  }
}

TEST_CASE("large convolutions and their gradients have the same bits whatever is computed beside them") {
  Tensor x = randn({3, 20, 33, 35}), w = randn({40, 20, 3, 3});
  Tensor whole = conv2d(x, w, {.padding = 1}), alone = conv2d(slice(x, 0, 1, 2), w, {.padding = 1});
  CHECK(same_bits(contiguous(slice(whole, 0, 1, 2)), alone));
}

TEST_CASE("large convolutions have the same bits whatever the number of threads") {
  Tensor x = randn({8, 32, 30, 31}), w = randn({48, 32, 3, 3}), v = randn({32, 1, 3, 3}), u = randn({32, 24, 4, 4});
  auto all = [&] {
    std::vector<Tensor> found;
    for (int which : {0, 1, 2}) {
      const Tensor& weights = which == 0 ? w : which == 1 ? v : u;
      auto f = [&](const Tensor& a, const Tensor& b) {
        if (which == 2) return conv_transposed2d(a, b, {.stride = 2, .padding = 1});
        return conv2d(a, b, {.padding = 1, .groups = which == 0 ? 1 : 32});
      };
      for (Tensor& one : with_gradients(f, x, weights)) found.push_back(std::move(one));
    }
    return found;
  };
  Threads one(1);
  std::vector<Tensor> alone = all();
  for (int threads : {2, 3}) {
    Threads several(threads);
    std::vector<Tensor> together = all();
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(alone[i], together[i]));
  }
}

TEST_CASE("the halves' convolutions are those of f32, rounded once") {
  for (DType dtype : {bf16, f16}) {
    Tensor x = to(randn({2, 5, 9, 9}), dtype), w = to(randn({6, 5, 3, 3}), dtype), b = to(randn({6}), dtype);
    Tensor wide = conv2d(to(x, f32), to(w, f32), to(b, f32), {.padding = 1});
    CHECK(same_bits(conv2d(x, w, b, {.padding = 1}), to(wide, dtype)));
  }
}

TEST_CASE("windows farther apart than x is long are no reason to take much memory") {
  std::int64_t far = std::int64_t{1} << 40;
  Tensor x = tensor({1.0, 2.0, 3.0, 4.0}), line = reshape(x, {1, 1, 4});
  CHECK(same_bits(conv1d(line, ones({1, 1, 3}, {.dtype = f64}), {.padding = Padding::same, .dilation = far}), line));
  CHECK(same_bits(conv1d(line, ones({1, 1, 1}, {.dtype = f64}), {.stride = far}), slice(line, 2, 0, 1)));
  Tape tape;
  tape.watch(line);
  Tensor y = conv1d(line, ones({1, 1, 1}, {.dtype = f64}), {.stride = far, .padding = Padding::same});
  CHECK(tape.gradient(y, line).to_vector<double>() == std::vector<double>{1, 0, 0, 0});
}

TEST_CASE("an image of few positions has the bits among many that it has alone") {
  for (DType dtype : {f32, f64})
    for (std::int64_t size : {3, 4, 5})
      for (std::int64_t channels : {16, 64, 128}) {
        CAPTURE(name_of(dtype), size, channels);
        manual_seed(static_cast<std::uint64_t>(size * channels));
        Tensor w = randn({channels, channels, 3, 3}, {.dtype = dtype}),
               x = randn({40, channels, size, size}, {.dtype = dtype});
        Tensor y = conv2d(x, w), back = conv_transposed2d(x, w);
        for (std::int64_t count : {1, 2, 7, 20}) {
          CHECK(same_bits(conv2d(slice(x, 0, 0, count), w), slice(y, 0, 0, count)));
          CHECK(same_bits(conv_transposed2d(slice(x, 0, 0, count), w), slice(back, 0, 0, count)));
        }
      }
}

TEST_CASE("convolutions refuse what does not fit") {
  Tensor x = of({2, 4, 6, 6}), w = of({6, 4, 3, 3}), v = of({4, 6, 3, 3});
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  all_fail<ShapeError>({
      Bad("conv1d: x and w must have rank 3: examples, channels and 1 spatial axis (x (2, 4, 6, 6), w (6, 4, 3, 3))",
          [&] { conv1d(x, w); }),
      Bad("conv2d: x and w must have rank 4",
          [&] {
            conv2d(of({6, 6}), w);
          }),
      Bad("conv3d: x and w must have rank 5", [&] { conv3d(x, w); }),
      Bad("conv_transposed1d: x and w must have rank 3", [&] { conv_transposed1d(x, v); }),
      Bad("conv_transposed2d: x and w must have rank 4",
          [&] {
            conv_transposed2d(x, of({4, 6, 3}));
          }),
      Bad("conv_transposed3d: x and w must have rank 5", [&] { conv_transposed3d(x, v); }),
      Bad("conv2d: w has no elements along a spatial axis",
          [&] {
            conv2d(x, of({6, 4, 0, 3}));
          }),
      Bad("conv2d: with groups 1, ",
          [&] {
            conv2d(x, of({6, 3, 3, 3}));
          }),
      Bad("conv2d: with groups 4, ",
          [&] {
            conv2d(x, of({6, 1, 3, 3}), {.groups = 4});
          }),
      Bad("those of a group of x's 7 (x (2, 7, 5, 4), w (6, 4, 3, 3)); x seems to have its channels last: give .layout "
          "= Layout::nhwc",
          [&] {
            conv2d(of({2, 7, 5, 4}), w);
          }),
      Bad("; x seems to have its channels first: leave out .layout = Layout::nhwc",
          [&] {
            conv2d(of({2, 4, 5, 7}), w, {.layout = Layout::nhwc});
          }),
      Bad("conv2d: groups 0 must be at least 1", [&] { conv2d(x, w, {.groups = 0}); }),
      Bad("conv2d: groups -1 must be at least 1", [&] { conv2d(x, w, {.groups = -1}); }),
      Bad("conv2d: bias must be of shape (6,), a number for each channel of the result (x (2, 4, 6, 6), w (6, 4, 3, "
          "3), bias (4,))",
          [&] { conv2d(x, w, of({4})); }),
      Bad("conv2d: stride (0,) must be at least 1", [&] { conv2d(x, w, {.stride = 0}); }),
      Bad("conv2d: stride (1, -2) must be at least 1",
          [&] {
            conv2d(x, w, {.stride = {1, -2}});
          }),
      Bad("conv2d: dilation (0,) must be at least 1", [&] { conv2d(x, w, {.dilation = 0}); }),
      Bad("conv2d: padding (-1,) must be at least 0", [&] { conv2d(x, w, {.padding = -1}); }),
      Bad("conv2d: padding (1, 1, 1) must be one number or one for each of 2 spatial axes",
          [&] {
            conv2d(x, w, {.padding = {1, 1, 1}});
          }),
      Bad("conv2d: stride () must be one number", [&] { conv2d(x, w, {.stride = AxisNumbers({})}); }),
      Bad("conv2d: the window spans 7 elements along spatial axis 1, but x has 6 with its padding",
          [&] {
            conv2d(x, w, {.dilation = {1, 3}});
          }),
      Bad("conv2d: the window spans 9 elements along spatial axis 0, but x has 8 with its padding",
          [&] {
            conv2d(x, w, {.padding = 1, .dilation = {4, 1}});
          }),
      Bad("conv2d: dilation goes beyond any size", [&] { conv2d(x, w, {.dilation = most}); }),
      Bad("conv2d: padding goes beyond any size", [&] { conv2d(x, w, {.padding = most}); }),
      Bad("conv_transposed2d: with groups 1, ",
          [&] {
            conv_transposed2d(x, of({3, 6, 3, 3}));
          }),
      Bad("conv_transposed2d: with groups 3, ", [&] { conv_transposed2d(x, v, {.groups = 3}); }),
      Bad("conv_transposed2d: groups 0 must be at least 1", [&] { conv_transposed2d(x, v, {.groups = 0}); }),
      Bad("conv_transposed2d: bias must be of shape (12,)", [&] { conv_transposed2d(x, v, of({6}), {.groups = 2}); }),
      Bad("conv_transposed2d: output_padding 1 must be less than the stride 1 or the dilation 1",
          [&] { conv_transposed2d(x, v, {.output_padding = 1}); }),
      Bad("conv_transposed2d: nothing is left of spatial axis 0 of the result, with padding 4",
          [&] { conv_transposed2d(x, v, {.padding = 4}); }),
      Bad("conv_transposed2d: nothing is left of spatial axis 1",
          [&] {
            conv_transposed2d(of({2, 4, 6, 0}), v);
          }),
      Bad("conv_transposed2d: stride goes beyond any size", [&] { conv_transposed2d(x, v, {.stride = most}); }),
      Bad("conv_transposed2d: stride (-1,) must be at least 1", [&] { conv_transposed2d(x, v, {.stride = -1}); }),
  });
  all_fail<DTypeError>({
      Bad("conv2d: ",
          [&] {
            conv2d(of({2, 4, 6, 6}, i32), w);
          }),
      Bad("conv2d: operands must have one dtype: x (2, 4, 6, 6) f32, w (6, 4, 3, 3) f64; convert with to(…, f32)",
          [&] {
            conv2d(x, of({6, 4, 3, 3}, f64));
          }),
      Bad("conv2d: operands must have one dtype: x (2, 4, 6, 6) f32, bias (6,) bf16",
          [&] { conv2d(x, w, of({6}, bf16)); }),
      Bad("conv2d: ", [&] { conv2d(x, 2.0); }),
      Bad("conv_transposed2d: operands must have one dtype",
          [&] {
            conv_transposed2d(x, of({4, 6, 3, 3}, f16));
          }),
  });
  all_fail<Error>({
      Bad("conv1d: ",
          [&] {
            conv1d(Tensor(), of({6, 4, 3}));
          }),
      Bad("conv2d: ", [&] { conv2d(x, Tensor()); }),
      Bad("conv2d: ", [&] { conv2d(x, w, Tensor()); }),
      Bad("conv_transposed3d: ", [&] { conv_transposed3d(Tensor(), v); }),
  });
}

}  // namespace reel_test
