#include <reel/reel.h>

#include <cmath>

#include "ops/bad_input.h"
#include "ops/numbers.h"

// Losses of labels, distances, samples of images and other functions that are composed of ops: what the op table does
// not reach.

namespace reel_test {

using namespace reel;

namespace {

using Run = std::function<Tensor(const Tensor&)>;

Tensor gradient_of(const Run& f, const Tensor& x) {
  Tape tape;
  tape.watch(x);
  return tape.gradient(sum(f(x)), x);
}

Tensor second_gradient_of(const Run& f, const Tensor& x) {
  Tape tape;
  tape.watch(x);
  return tape.gradient(sum(gradient_of(f, x)), x, {.unconnected = Unconnected::zeros});
}

bool all_finite(const Tensor& x) { return all(isfinite(x)).item<bool>(); }

}  // namespace

TEST_CASE("gaussian_nll_loss takes a variance below epsilon for epsilon, and lets it grow") {
  Tensor x = tensor({1.0}), t = tensor({0.0}), small = tensor({1e-9});
  auto loss = [&](const Tensor& v) { return gaussian_nll_loss(x, t, v, {.epsilon = 0.5}); };
  CHECK(loss(small).item() == Approx(0.5 * (std::log(0.5) + 2)));
  CHECK(gradient_of(loss, small).item() == Approx(0.5 * (2 - 4)));
  CHECK(loss(tensor({2.0})).item() == Approx(0.5 * (std::log(2) + 0.5)));
  // However far below: ε is not lost in a difference.
  for (float far : {0.0f, -1.0f, -1e6f, -1e30f})
    CHECK(gaussian_nll_loss(zeros({1}), zeros({1}), tensor({far})).item() == Approx(0.5 * std::log(1e-6)));
}

TEST_CASE("losses of labels are those of PyTorch's examples") {
  Tensor x = tensor({{0.1, 0.2, 0.4, 0.8}});
  CHECK(multilabel_margin_loss(x, tensor({{3, 0, -1, 1}})).item() == Approx(0.85));
  CHECK(multilabel_margin_loss(x, tensor({{-1, 0, 2, 1}})).item() == 0);
  CHECK(multi_margin_loss(x, tensor({3})).item() == Approx(0.325));
  // A label may be repeated, and is then added as often.
  CHECK(multilabel_margin_loss(x, tensor({{3, 3, -1, 1}})).item() == Approx(2 * (0.3 + 0.4 + 0.6) / 4));
  // Losses of certain labels are tiny, not differences of large numbers.
  Tensor sure = tensor({{-50.0f, 50.0f}}), labels = tensor({{0.0f, 1.0f}});
  CHECK(multilabel_soft_margin_loss(sure, labels).item() == Approx(std::exp(-50.0)).epsilon(1e-4));
}

TEST_CASE("distances have gradients where they are 0, and vectors of zeros have a cosine") {
  Tensor a = randn({30, 4}, {.dtype = f64}), few = slice(a, 0, 0, 3);
  for (const Tensor& x : {a, few})
    for (double p : {1.0, 2.0, 3.0, infinity}) {
      CAPTURE(p, x.size(0));
      Run own = [&](const Tensor& v) { return cdist(v, v, {.p = p}); };
      CHECK(all_finite(gradient_of(own, x)));
      CHECK(all_finite(second_gradient_of(own, x)));
      CHECK(std::abs(values_of(cdist(x, x, {.p = p}))[0]) < 1e-7);
    }
  CHECK(cdist(tensor({{0.0, 3.0}}), tensor({{0.0, 5.0}, {1.0, 3.0}}), {.p = 0}).to_vector<double>() ==
        std::vector<double>{1, 1});
  Tensor zero = zeros({2, 3}, {.dtype = f64}), one = ones({2, 3}, {.dtype = f64});
  CHECK(cosine_similarity(zero, one).to_vector<double>() == std::vector<double>{0, 0});
  CHECK(cosine_similarity(full({2, 3}, 1e30), full({2, 3}, -1e30)).to_vector<float>()[0] == Approx(-1));
  Run similarity = [&](const Tensor& v) { return cosine_similarity(v, one); };
  CHECK(all_finite(gradient_of(similarity, zero)));
  Run unit = [](const Tensor& v) { return normalize(v); };
  CHECK(values_of(normalize(zero)) == std::vector<double>(6, 0));
  CHECK(all_finite(gradient_of(unit, zero)));
}

TEST_CASE("distances by a matrix product are close to those of differences far from the origin") {
  manual_seed(5);
  Tensor a = randn({40, 6}) + 1000, b = randn({50, 6}) + 1000;
  Tensor direct = norm(unsqueeze(a, 1) - unsqueeze(b, 0), -1);
  CHECK(max(abs(cdist(a, b) - direct)).item() < 1e-5);
}

TEST_CASE("grid_sample reads a pixel at its own centre, whatever the padding") {
  Tensor x = reshape(arange(12, {.dtype = f64}), {1, 1, 3, 4});
  for (bool align : {false, true})
    for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (Interpolation mode : {Interpolation::linear, Interpolation::nearest}) {
        Tensor theta = tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}});
        Tensor grid = affine_grid(theta, {3, 4}, {.align_corners = align});
        Tensor y = grid_sample(x, grid, {.mode = mode, .padding = padding, .align_corners = align});
        CHECK(max(abs(y - x)).item() < 1e-13);
      }
}

TEST_CASE("grid_sample beyond the image, at infinity and at NaN") {
  Tensor x = reshape(tensor({1.0, infinity, 3.0, 4.0}), {1, 1, 2, 2});
  Tensor far = reshape(tensor({-infinity, 0.0, infinity, infinity, 50.0, -0.5, nan, nan}), {1, 1, 4, 2});
  CHECK(values_of(grid_sample(x, far)) == std::vector<double>{0, 0, 0, 0.25});
  // The infinite pixel weighs nothing in the results that do not see it.
  CHECK(values_of(grid_sample(x, far, {.padding = GridPadding::border}))[1] == 4);
  CHECK(values_of(grid_sample(x, far, {.mode = Interpolation::nearest, .padding = GridPadding::border})) ==
        std::vector<double>{1, 4, infinity, 1});
  Tensor finite = reshape(tensor({1.0, 2.0, 3.0, 4.0}), {1, 1, 2, 2});
  for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
    CHECK(all_finite(gradient_of([&](auto& grid) { return grid_sample(finite, grid, {.padding = padding}); }, far)));
  // Beyond the border the derivative is 0.
  Tensor outside = reshape(tensor({2.0, -3.0}), {1, 1, 1, 2});
  CHECK(values_of(gradient_of([&](auto& grid) { return grid_sample(finite, grid, {.padding = GridPadding::border}); },
                              outside)) == std::vector<double>{0, 0});
}

TEST_CASE("dropout2d drops whole channels, and its module does so while training") {
  manual_seed(3);
  Tensor x = ones({50, 20, 3, 2});
  Tensor y = dropout2d(x, {.probability = 0.25}), sums = sum(y, {2, 3});
  double dropped = 0;
  for (double channel : values_of(sums)) {
    CHECK((channel == 0 || std::abs(channel - 8) < 1e-5));
    dropped += channel == 0;
  }
  CHECK(dropped / 1000 == Approx(0.25).epsilon(0.2));
  nn::Dropout2d layer(0.5);
  CHECK(count_nonzero(layer(x)).item() < 6000);
  layer.eval();
  CHECK(same_bits(layer(x), x));
  Tensor single = ones({20, 3, 2});
  layer.train();
  std::vector<double> channels = values_of(sum(layer(single), {1, 2}));
  for (double channel : channels) CHECK((channel == 0 || channel == 12));
}

TEST_CASE("an example without its axis gives what a batch of one gives") {
  manual_seed(11);
  for (int axes : {1, 2, 3}) {
    Shape image{4}, window{6, 4}, transposed{4, 6};
    for (int i = 0; i < axes; ++i) {
      image.push_back(5 + i);
      window.push_back(3);
      transposed.push_back(3);
    }
    Tensor x = randn(image), w = randn(window), v = randn(transposed), bias = randn({6});
    auto conv = [&](const Tensor& image, const ConvolutionOptions& options) {
      return axes == 1   ? conv1d(image, w, bias, options)
             : axes == 2 ? conv2d(image, w, bias, options)
                         : conv3d(image, w, bias, options);
    };
    auto back = [&](const Tensor& image) {
      TransposedConvolutionOptions options{.stride = 2};
      return axes == 1   ? conv_transposed1d(image, v, bias, options)
             : axes == 2 ? conv_transposed2d(image, v, bias, options)
                         : conv_transposed3d(image, v, bias, options);
    };
    ConvolutionOptions options{.stride = 2, .padding = 1};
    CHECK(same_bits(conv(x, options), squeeze(conv(unsqueeze(x, 0), options), 0)));
    CHECK(same_bits(back(x), squeeze(back(unsqueeze(x, 0)), 0)));
    CHECK(gradient_of([&](auto& given) { return square(conv(given, {})); }, x).shape() == x.shape());
  }
  Tensor last = randn({5, 5, 4}), w = randn({6, 4, 3, 3});
  CHECK(conv2d(last, w, {.layout = reel::Layout::nhwc}).shape() == Shape{3, 3, 6});
}

TEST_CASE("the size of a transposed convolution's result can be chosen within a stride") {
  manual_seed(12);
  Tensor x = randn({2, 3, 4, 5}), w = randn({3, 2, 3, 3});
  TransposedConvolutionOptions by_padding{.stride = 3, .padding = 1, .output_padding = {2, 1}};
  Tensor y = conv_transposed2d(x, w, by_padding);
  TransposedConvolutionOptions by_size{.stride = 3, .padding = 1, .output_size = {y.size(2), y.size(3)}};
  CHECK(same_bits(y, conv_transposed2d(x, w, by_size)));
  Tensor same = conv_transposed2d(x, w, {.stride = 2, .padding = Padding::same});
  CHECK(same.shape() == Shape{2, 2, 8, 10});
  CHECK(conv_transposed2d(x, w, {.stride = 2, .padding = Padding::same, .output_size = {7, 10}}).shape() ==
        Shape{2, 2, 7, 10});
  // It is the transpose of the convolution with that padding.
  Tensor image = randn({2, 2, 7, 10}, {.dtype = f64}), wide = to(w, f64), d = to(x, f64);
  Tensor product = sum(conv2d(image, wide, {.stride = 2, .padding = Padding::same}) * d);
  Tensor other =
      sum(image * conv_transposed2d(d, wide, {.stride = 2, .padding = Padding::same, .output_size = {7, 10}}));
  CHECK(product.item() == Approx(other.item()));
  nn::ConvTransposed2d layer(3, 2, 3, {.stride = 2, .padding = Padding::same});
  CHECK(layer(x).shape() == Shape{2, 2, 8, 10});
}

TEST_CASE("composed functions say what they cannot do") {
  Tensor u, ints = tensor({{1, 2}, {3, 4}}), m = ones({2, 3}), v = ones({4}), d = ones({2, 3}, {.dtype = f64});
  Tensor image = ones({2, 4, 3, 3}), grid = zeros({2, 3, 3, 2}), theta = ones({2, 2, 3});
  all_fail<Error>({
      Bad("gaussian_nll_loss: an operand is an undefined tensor", [&] { gaussian_nll_loss(m, m, u); }),
      Bad("gaussian_nll_loss: epsilon must be above 0, not 0", [&] { gaussian_nll_loss(m, m, m, {.epsilon = 0}); }),
      Bad("multi_margin_loss: p is 3, neither 1 nor 2",
          [&] {
            multi_margin_loss(m, tensor({0, 1}), {.p = 3});
          }),
      Bad("multi_margin_loss: an operand is an undefined tensor", [&] { multi_margin_loss(u, u); }),
      Bad("cosine_similarity: epsilon is -1, not at least 0", [&] { cosine_similarity(m, m, {.epsilon = -1}); }),
      Bad("pairwise_distance: p is NaN", [&] { pairwise_distance(m, m, {.p = nan}); }),
      Bad("cdist: p is -1, not at least 0", [&] { cdist(m, m, {.p = -1}); }),
      Bad("normalize: p is NaN", [&] { normalize(m, {.p = nan}); }),
      Bad("normalize: epsilon is -1, not at least 0", [&] { normalize(m, {.epsilon = -1}); }),
      Bad("grid_sample: interpolates linearly or by the nearest pixel only",
          [&] { grid_sample(image, grid, {.mode = Interpolation::cubic}); }),
      Bad("dropout2d: the probability 2 lies outside [0, 1]", [&] { dropout2d(image, {.probability = 2}); }),
      Bad("Dropout2d: a probability lies between 0 and 1, not 2", [&] { nn::Dropout2d layer(2); }),
  });
  all_fail<IndexError>({
      Bad("multi_margin_loss: a target is none of the 3 classes",
          [&] {
            multi_margin_loss(m, tensor({0, 3}));
          }),
      Bad("multi_margin_loss: a target is none of the 3 classes",
          [&] {
            multi_margin_loss(m, tensor({0, -1}));
          }),
      Bad("multilabel_margin_loss: a target is none of the 3 classes",
          [&] {
            multilabel_margin_loss(ones({3}), tensor({0, 3, 1}));
          }),
  });
  all_fail<DTypeError>({
      Bad("gaussian_nll_loss: the variance (2, 3) f64 does not have the input's dtype f32",
          [&] { gaussian_nll_loss(m, m, d); }),
      Bad("multi_margin_loss: the targets (2, 3) f32 are not of i32 or i64", [&] { multi_margin_loss(m, m); }),
      Bad("multilabel_margin_loss: the targets (2, 3) f32 are not of i32 or i64",
          [&] { multilabel_margin_loss(m, m); }),
      Bad("multilabel_soft_margin_loss: the target (2, 3) f64 does not have",
          [&] { multilabel_soft_margin_loss(m, d); }),
      Bad("cosine_similarity: operands must have one dtype: a (2, 3) f32, b (2, 3) f64",
          [&] { cosine_similarity(m, d); }),
      Bad("pairwise_distance: takes a floating tensor, not (2, 2) i32", [&] { pairwise_distance(ints, ints); }),
      Bad("cdist: operands must have one dtype", [&] { cdist(m, d); }),
      Bad("normalize: takes a floating tensor, not (2, 2) i32", [&] { normalize(ints); }),
      Bad("local_response_norm: takes a floating tensor, not (2, 2) i32", [&] { local_response_norm(ints, 2); }),
      Bad("dropout2d: takes a floating tensor, not (2, 2) i32", [&] { dropout2d(ints); }),
      Bad("affine_grid: takes a floating tensor, not (2, 2) i32",
          [&] {
            affine_grid(ints, {2, 2});
          }),
      Bad("grid_sample: the grid (2, 3, 3, 2) f64 does not have the dtype of x (2, 4, 3, 3) f32",
          [&] { grid_sample(image, to(grid, f64)); }),
  });
  all_fail<ShapeError>({
      Bad("gaussian_nll_loss: the variance (4,) has neither the shape of the input (2, 3) nor one number",
          [&] { gaussian_nll_loss(m, m, v); }),
      Bad("multi_margin_loss: the input (2, 3) and the targets (3,) do not fit",
          [&] {
            multi_margin_loss(m, tensor({0, 1, 2}));
          }),
      Bad("multi_margin_loss: the weight (4,) is not one number for each of 3 classes",
          [&] {
            multi_margin_loss(m, tensor({0, 1}), {.weight = v});
          }),
      Bad("multilabel_margin_loss: the input (2, 3) and the targets (2,) do not fit",
          [&] {
            multilabel_margin_loss(m, tensor({0, 1}));
          }),
      Bad("multilabel_soft_margin_loss: takes (…, C), not () f32",
          [&] { multilabel_soft_margin_loss(ones({}), ones({})); }),
      Bad("cosine_similarity: shapes do not broadcast: a (2, 3), b (4,)", [&] { cosine_similarity(m, v); }),
      Bad("cosine_similarity: axis 2 does not exist", [&] { cosine_similarity(m, m, {.axis = 2}); }),
      Bad("pairwise_distance: shapes do not broadcast: a (2, 3), b (4,)", [&] { pairwise_distance(m, v); }),
      Bad("cdist: takes rows of one length, (…, P, D) and (…, R, D), not (2, 3) and (4,)", [&] { cdist(m, v); }),
      Bad("cdist: the axes in front of the rows do not broadcast",
          [&] {
            cdist(ones({2, 1, 3}), ones({3, 1, 3}));
          }),
      Bad("normalize: axis 2 does not exist", [&] { normalize(m, {.axis = 2}); }),
      Bad("local_response_norm: takes (N, C, d…), not (2, 3) f32", [&] { local_response_norm(m, 2); }),
      Bad("local_response_norm: the size 0 is not at least 1", [&] { local_response_norm(image, 0); }),
      Bad("pixel_shuffle: takes (…, C, H, W), not (2, 3) f32", [&] { pixel_shuffle(m, 2); }),
      Bad("pixel_shuffle: the channels of (2, 4, 3, 3) f32 are no multiple of the 9 pixels",
          [&] { pixel_shuffle(image, 3); }),
      Bad("pixel_unshuffle: the last two sizes of (2, 4, 3, 3) f32 are no multiples of 2",
          [&] { pixel_unshuffle(image, 2); }),
      Bad("pixel_unshuffle: the factor 0 is not in [1, 2³⁰]", [&] { pixel_unshuffle(image, 0); }),
      Bad("dropout2d: takes (N, C, H, W) or (C, H, W), not (2, 3) f32", [&] { dropout2d(m); }),
      Bad("affine_grid: takes theta (N, 2, 3) and a size (H, W)",
          [&] {
            affine_grid(theta, {2, 2, 2});
          }),
      Bad("affine_grid: takes theta (N, 2, 3) and a size (H, W)",
          [&] {
            affine_grid(theta, {2, -2});
          }),
      Bad("grid_sample: takes x (N, C, H, W) and a grid (N, h, w, 2)",
          [&] {
            grid_sample(image, ones({2, 3, 3, 3}));
          }),
      Bad("grid_sample: x (2, 4, 0, 3) f32 has no pixels",
          [&] {
            grid_sample(ones({2, 4, 0, 3}), grid);
          }),
      Bad("conv_transposed1d: output_size 9 of spatial axis 0 must be in [7, 8]",
          [&] {
            conv_transposed1d(ones({1, 1, 3}), ones({1, 1, 3}), {.stride = 2, .output_size = {9}});
          }),
      Bad("conv_transposed1d: output_size (7, 7) must have one number for each of 1 spatial axes",
          [&] {
            conv_transposed1d(ones({1, 1, 3}), ones({1, 1, 3}), {.stride = 2, .output_size = {7, 7}});
          }),
      Bad("conv_transposed1d: output_padding (1,) contradicts Padding::same",
          [&] {
            conv_transposed1d(ones({1, 1, 3}), ones({1, 1, 3}),
                              {.stride = 2, .padding = Padding::same, .output_padding = 1});
          }),
  });
}

}  // namespace reel_test
