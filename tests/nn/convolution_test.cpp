#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <cmath>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

template <class Layer>
void check_first_values(const Layer& layer, const Shape& shape, double fan) {
  CHECK(layer.weight.shape() == shape);
  double bound = 1 / std::sqrt(fan), largest = max(abs(layer.weight)).item();
  CHECK(largest <= bound);
  CHECK(largest > 0.9 * bound);
  CHECK(max(abs(layer.bias)).item() <= bound);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.to_vector<float>() == b.to_vector<float>();
}

}  // namespace

TEST_CASE(
    "a convolution's weight has PyTorch's layout, and starts uniform on one over the root of a window's elements") {
  manual_seed(1);
  check_first_values(nn::Conv1d(6, 64, 5), {64, 6, 5}, 30);
  check_first_values(nn::Conv2d(6, 64, {3, 5}, {.groups = 2}), {64, 3, 3, 5}, 45);
  check_first_values(nn::Conv3d(4, 32, 2), {32, 4, 2, 2, 2}, 32);
  check_first_values(nn::ConvTransposed1d(64, 6, 5), {64, 6, 5}, 30);
  check_first_values(nn::ConvTransposed2d(64, 6, 3, {.groups = 2}), {64, 3, 3, 3}, 27);
  check_first_values(nn::ConvTransposed3d(32, 4, {2, 2, 2}), {32, 4, 2, 2, 2}, 32);
  nn::Conv2d given(2, 3, 3, {.initialiser = nn::constant(2), .bias_initialiser = nn::constant(1), .dtype = f64});
  CHECK(given.weight.dtype() == f64);
  CHECK(min(given.weight).item() == 2);
  CHECK(min(given.bias).item() == 1);
}

TEST_CASE("a convolution layer is the op with its weight, its bias and its options") {
  manual_seed(2);
  Tensor line = randn({2, 4, 9}), image = randn({2, 4, 9, 8}), volume = randn({2, 4, 5, 6, 7});
  nn::Conv1d one(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2});
  CHECK(same(one(line), conv1d(line, one.weight, one.bias, {.stride = 2, .padding = 1, .groups = 2})));
  nn::Conv2d two(4, 6, {3, 2}, {.padding = Padding::same, .dilation = {1, 2}, .bias = false});
  CHECK_FALSE(two.bias.defined());
  CHECK(two.parameters().size() == 1);
  CHECK(same(two(image), conv2d(image, two.weight, {.padding = Padding::same, .dilation = {1, 2}})));
  nn::Conv2d last(4, 6, 3, {.layout = Layout::nhwc});
  Tensor channels_last = contiguous(permute(image, {0, 2, 3, 1}));
  CHECK(same(last(channels_last), conv2d(channels_last, last.weight, last.bias, {.layout = Layout::nhwc})));
  nn::Conv3d three(4, 2, 2);
  CHECK(same(three(volume), conv3d(volume, three.weight, three.bias)));
  nn::ConvTransposed1d up_one(4, 6, 3, {.stride = 2, .output_padding = 1});
  CHECK(same(up_one(line), conv_transposed1d(line, up_one.weight, up_one.bias, {.stride = 2, .output_padding = 1})));
  nn::ConvTransposed2d up_two(4, 6, 3, {.padding = 1, .groups = 2, .bias = false});
  CHECK(same(up_two(image), conv_transposed2d(image, up_two.weight, {.padding = 1, .groups = 2})));
  nn::ConvTransposed3d up_three(4, 2, 2, {.dilation = 2});
  CHECK(same(up_three(volume), conv_transposed3d(volume, up_three.weight, up_three.bias, {.dilation = 2})));
}

TEST_CASE("convolution layers are parts of models, are copied, and count their operations") {
  struct Model : nn::Module {
    nn::Conv2d first{*this, "first", 1, 4, 3, {.padding = 1}};
    nn::ConvTransposed2d second{*this, "second", 4, 2, {2, 2}, {.stride = 2, .bias = false}};
  };
  Model model;
  CHECK(model.named_parameters()[0].name == "first.weight");
  CHECK(model.named_parameters()[2].name == "second.weight");
  CHECK(model.first.type_name() == "Conv2d");
  Model copy = nn::clone(model);
  Tensor x = randn({3, 1, 6, 6});
  CHECK(same(copy.second(copy.first(x)), model.second(model.first(x))));
  CHECK(model.first.last_flops() == 2.0 * 3 * 4 * 36 * 9);
  CHECK(model.second.last_flops() == 2.0 * 3 * 4 * 36 * 2 * 4);
}

TEST_CASE("the gradients of convolution layers agree with differences") {
  manual_seed(3);
  nn::Conv2d down(2, 3, 3, {.stride = 2, .padding = 1, .dtype = f64});
  nn::ConvTransposed2d up(3, 2, 2, {.stride = 2, .dtype = f64});
  auto f = [&](std::span<const Tensor> inputs) { return tanh(up(down(inputs[0]))); };
  auto report = debug::gradcheck(f, {randn({2, 2, 5, 5}, {.dtype = f64})});
  INFO(report.text);
  CHECK(report);
}

TEST_CASE("a convolution layer names itself, the caller's line and what does not fit") {
  CHECK_THAT(error_of<ShapeError>([] { nn::Conv2d(0, 2, 3); }), contains("Conv2d: sizes must be positive"));
  CHECK_THAT(error_of<ShapeError>([] {
               nn::Conv2d(3, 2, {3, 3, 3});
             }),
             contains("Conv2d: a window has one size, or 2, not (3, 3, 3)"));
  CHECK_THAT(error_of<ShapeError>([] { nn::Conv1d(3, 4, 3, {.groups = 2}); }),
             contains("Conv1d: 2 groups do not divide 4 and 3 channels"));
  int line = __LINE__ + 1;
  std::string made = error_of<ShapeError>([] { nn::ConvTransposed3d(3, 2, 0); });
  CHECK_THAT(made, contains("ConvTransposed3d: sizes must be positive"));
  CHECK_THAT(made, contains(to_string(Location{__FILE__, line})));
  nn::Conv2d layer(3, 2, 3);
  Tensor x = ones({1, 4, 5, 5});
  line = __LINE__ + 1;
  std::string called = error_of<ShapeError>([&] { layer(x); });
  CHECK_THAT(called, contains("(1, 4, 5, 5)"));
  CHECK_THAT(called, contains(to_string(Location{__FILE__, line})));
  CHECK_THAT(error_of<Error>([&] { layer(Tensor()); }), contains("Conv2d: an operand is an undefined tensor"));
}

TEST_CASE("pooling layers are the ops of their names, and stand in a Sequential") {
  manual_seed(4);
  Tensor line = randn({2, 3, 8}), image = randn({2, 3, 8, 8}), volume = randn({2, 3, 4, 4, 4});
  CHECK(same(nn::MaxPool1d(2)(line), max_pool1d(line, 2)));
  CHECK(same(nn::MaxPool2d({3, 2}, {.stride = 2, .padding = {1, 0}})(image),
             max_pool2d(image, {3, 2}, {.stride = 2, .padding = {1, 0}})));
  CHECK(same(nn::MaxPool3d(2)(volume), max_pool3d(volume, 2)));
  CHECK(same(nn::AvgPool1d(3, {.stride = 1})(line), avg_pool1d(line, 3, {.stride = 1})));
  CHECK(same(nn::AvgPool2d(2, {.padding = 1, .count_include_pad = false})(image),
             avg_pool2d(image, 2, {.padding = 1, .count_include_pad = false})));
  CHECK(same(nn::AvgPool3d(2)(volume), avg_pool3d(volume, 2)));
  CHECK(same(nn::AdaptiveAvgPool1d(3)(line), adaptive_avg_pool1d(line, 3)));
  CHECK(same(nn::AdaptiveAvgPool2d({3, 1})(image), adaptive_avg_pool2d(image, {3, 1})));
  CHECK(same(nn::AdaptiveAvgPool3d(1)(volume), adaptive_avg_pool3d(volume, 1)));
  CHECK(same(nn::AdaptiveMaxPool1d(3)(line), adaptive_max_pool1d(line, 3)));
  CHECK(same(nn::AdaptiveMaxPool2d(2)(image), adaptive_max_pool2d(image, 2)));
  CHECK(same(nn::AdaptiveMaxPool3d(2)(volume), adaptive_max_pool3d(volume, 2)));

  nn::Sequential net(nn::Conv2d(3, 4, 3), nn::ReLU(), nn::MaxPool2d(2));
  CHECK(net(image).shape() == Shape{2, 4, 3, 3});
  struct Model : nn::Module {
    nn::MaxPool2d pool{*this, "pool", 2};
  };
  CHECK(same(Model().pool(image), max_pool2d(image, 2)));
  CHECK(nn::MaxPool2d(2).type_name() == "MaxPool2d");
  CHECK_THAT(error_of<Error>([] { nn::MaxPool2d(2)(Tensor()); }), contains("MaxPool2d: an operand is an undefined"));
  CHECK_THROWS_AS(nn::AvgPool2d(9)(image), ShapeError);
}

TEST_CASE("a Conv1d of packed sequences equals one of each sequence alone, with gradients to both orders") {
  manual_seed(3);
  const nn::ConvolutionLayerOptions cases[] = {
      {},
      {.padding = 2},
      {.padding = Padding::same},
      {.padding = Padding::valid},
      {.stride = 2, .padding = Padding::same},
      {.stride = 2, .padding = 1, .dilation = 2},
      {.padding = 1, .groups = 2, .bias = false},
      {.padding = Padding::same, .groups = 2},
  };
  for (nn::ConvolutionLayerOptions options : cases) {
    options.dtype = f64;
    nn::Conv1d layer(4, 6, 3, options);
    std::vector<Tensor> sequences;
    for (std::int64_t length : {5, 0, 1, 3, 8}) sequences.push_back(randn({length, 4}, {.dtype = f64}));
    nn::Packed packed = nn::pack(sequences), found = layer(packed);
    REQUIRE(found.size() == 5);
    std::vector<Tensor> alone = found.sequences();
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      CAPTURE(i, found.lengths[i]);
      std::int64_t length = sequences[i].size(0), reach = 2 * options.dilation.given()[0] + 1,
                   zeros = options.padding.by_number() ? 2 * options.padding.numbers().given()[0] : 0;
      bool is_same = !options.padding.by_number() && options.padding.rule() == Padding::same;
      if (length == 0 || (!is_same && length + zeros < reach)) {
        CHECK(found.lengths[i] == 0);
        continue;
      }
      Tensor expected = transpose(select(layer(unsqueeze(transpose(sequences[i]), 0)), 0, 0));
      REQUIRE(alone[i].shape() == expected.shape());
      CHECK(max(abs(alone[i] - expected)).item() < 1e-12);
    }
    auto f = [&](std::span<const Tensor> x) { return square(layer(nn::Packed{x[0], packed.lengths}).elements); };
    CHECK(debug::gradcheck(f, {packed.elements}));
    CHECK(debug::gradgradcheck(f, {packed.elements}));
    auto of_weight = [&](std::span<const Tensor> x) {
      layer.weight = x[0];
      return square(layer(packed).elements);
    };
    CHECK(debug::gradcheck(of_weight, {copy(stop_gradient(layer.weight))}));
  }
}

TEST_CASE("a Conv1d refuses packed sequences that do not fit") {
  nn::Conv1d layer(4, 6, 3);
  CHECK_THAT(error_of<ShapeError>([&] {
               layer(nn::Packed{zeros({2, 3}), {2}});
             }),
             contains("Conv1d: the elements (2, 3) are not (N, 4), as the weight (6, 4, 3) needs"));
  CHECK_THAT(error_of<ShapeError>([&] { layer(nn::Packed{zeros({2, 4}), {1}}); }), contains("Conv1d: elements (2, 4)"));
  CHECK_THAT(error_of<DTypeError>([&] {
               layer(nn::Packed{zeros({2, 4}, {.dtype = f64}), {2}});
             }),
             contains("do not have the dtype f32 of the weight"));
  CHECK_THAT(error_of<Error>([&] { layer(nn::Packed{}); }), contains("Conv1d: the elements are an undefined tensor"));
  nn::Conv1d odd(4, 6, 3, {.stride = 0});
  CHECK_THAT(error_of<ShapeError>([&] { odd(nn::Packed{zeros({2, 4}), {2}}); }), contains("stride 0"));
}
