#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

double difference(const Tensor& a, const Tensor& b) { return max(abs(to(a, f64) - to(b, f64))).item<double>(); }

}  // namespace

TEST_CASE("BatchNorm takes the batch's statistics in training, and keeps running ones") {
  nn::BatchNorm1d norm(2, {.momentum = 0.25});
  Tensor x = tensor<float>({{1, 10}, {2, 20}, {3, 60}});  // means 2, 30; variances 1, 700 of n − 1, 2/3, 466.7 of n
  Tensor y = norm(x);
  CHECK(y.to_vector<float>()[0] == Approx(-1 / std::sqrt(2. / 3 + 1e-5)));
  CHECK(y.to_vector<float>()[5] == Approx(30 / std::sqrt(1400. / 3 + 1e-5)));
  CHECK(norm.running_mean.to_vector<float>()[0] == Approx(0.5));
  CHECK(norm.running_mean.to_vector<float>()[1] == Approx(7.5));
  CHECK(norm.running_variance.to_vector<float>()[0] == Approx(0.75 + 0.25));
  CHECK(norm.running_variance.to_vector<float>()[1] == Approx(0.75 + 0.25 * 700));
  norm(x);
  CHECK(norm.running_mean.to_vector<float>()[0] == Approx(0.75 * 0.5 + 0.25 * 2));
}

TEST_CASE("BatchNorm takes its running statistics after training, and leaves them") {
  nn::BatchNorm1d norm(1);
  norm.running_mean = tensor<float>({4});
  norm.running_variance = tensor<float>({9});
  norm.weight = tensor<float>({2}).requires_grad();
  norm.eval();
  CHECK(norm(tensor<float>({{7}})).item() == Approx(2 * 3 / std::sqrt(9 + 1e-5)));
  CHECK(norm.running_mean.item() == 4);
  CHECK(norm.running_variance.item() == 9);
}

TEST_CASE("BatchNorm without running statistics takes the batch's at all times, without weights none") {
  manual_seed(1);
  nn::BatchNorm2d norm(3, {.affine = false, .track_running_statistics = false});
  CHECK(norm.parameters().empty());
  CHECK(norm.named_buffers().empty());
  Tensor x = randn({4, 3, 5, 5}) * 3 + 1, y = norm(x);
  CHECK(max(abs(mean(y, {0, 2, 3}))).item() < 1e-5);
  norm.eval();
  CHECK(difference(norm(x), y) == 0);
}

TEST_CASE("BatchNorm without running statistics takes x of any floating dtype") {
  manual_seed(1);
  Tensor x = randn({16, 3}, {.dtype = f64}) * 3 + 1;
  nn::BatchNorm1d plain(3, {.affine = false, .track_running_statistics = false});
  Tensor centred = x - mean(x, 0), expected = centred / sqrt(mean(square(centred), 0) + 1e-5);
  CHECK(difference(plain(x), expected) < 1e-12);
  nn::BatchNorm1d weighted(3, {.track_running_statistics = false, .dtype = f64});
  CHECK(difference(weighted(x), expected) < 1e-12);
  for (DType dtype : {f16, bf16}) {
    Tensor y = plain(to(x, dtype));
    CHECK(y.dtype() == dtype);
    CHECK(difference(to(y, f64), expected) < 0.05);
  }
}

TEST_CASE("BatchNorm's names, and its values in a copy and in another dtype") {
  struct Model : nn::Module {
    nn::BatchNorm2d norm{*this, "norm", 3};
  };
  Model model;
  manual_seed(2);
  model.norm(randn({4, 3, 2, 2}));
  CHECK(model.named_parameters()[0].name == "norm.weight");
  CHECK(model.named_parameters()[1].name == "norm.bias");
  CHECK(model.named_buffers()[0].name == "norm.running_mean");
  CHECK(model.named_buffers()[1].name == "norm.running_variance");
  CHECK(model.norm.type_name() == "BatchNorm2d");
  Model copy = nn::clone(model);
  copy.norm(randn({4, 3, 2, 2}) + 5);
  CHECK(difference(copy.norm.running_mean, model.norm.running_mean) > 0.3);
  model.to(f64);
  CHECK(model.norm.running_variance.dtype() == f64);
  CHECK(model.norm(randn({4, 3, 2, 2}, {.dtype = f64})).dtype() == f64);
}

TEST_CASE("a part of a model is normalised as the model is told to") {
  nn::Sequential net(nn::Linear(2, 3), nn::BatchNorm1d(3));
  net.eval();
  CHECK(net(ones({1, 2})).shape() == Shape{1, 3});  // one element a channel
  net.train();
  CHECK_THROWS_AS(net(ones({1, 2})), ShapeError);
}

TEST_CASE("GroupNorm, InstanceNorm and RMSNorm are the ops with their weights") {
  manual_seed(3);
  Tensor x = randn({2, 6, 4, 5}), weight = randn({6}), bias = randn({6});
  nn::GroupNorm group(3, 6);
  CHECK(difference(group(x), group_norm(x, 3)) < 1e-6);
  group.weight = copy(weight).requires_grad();
  group.bias = copy(bias).requires_grad();
  CHECK(difference(group(x), group_norm(x, 3, weight, bias)) == 0);
  CHECK(nn::GroupNorm(3, 6, {.affine = false}).parameters().empty());

  nn::InstanceNorm2d plain(6), instance(6, {.epsilon = 1e-3, .affine = true});
  CHECK(plain.parameters().empty());
  CHECK(difference(plain(x), instance_norm(x)) == 0);
  instance.weight = copy(weight).requires_grad();
  instance.bias = copy(bias).requires_grad();
  CHECK(difference(instance(x), instance_norm(x, weight, bias, {.epsilon = 1e-3})) == 0);
  CHECK(nn::InstanceNorm1d(6)(randn({2, 6, 4})).shape() == Shape{2, 6, 4});
  CHECK(nn::InstanceNorm3d(6)(randn({2, 6, 2, 3, 4})).shape() == Shape{2, 6, 2, 3, 4});

  nn::RMSNorm root({5});
  CHECK(root.named_parameters()[0].name == "weight");
  root.weight = randn({5}).requires_grad();
  CHECK(difference(root(x), rms_norm(x, {5}, root.weight)) == 0);
  CHECK(difference(nn::RMSNorm({4, 5}, {.affine = false})(x), rms_norm(x, {4, 5})) == 0);
}

TEST_CASE("channels may stand last in norms") {
  manual_seed(4);
  Tensor x = randn({2, 4, 4, 6}), first = contiguous(permute(x, {0, 3, 1, 2}));
  auto channels_last = [](const Tensor& y) { return permute(y, {0, 2, 3, 1}); };
  CHECK(difference(nn::BatchNorm2d(6, {.layout = Layout::nhwc})(x), channels_last(nn::BatchNorm2d(6)(first))) < 1e-5);
  CHECK(difference(nn::GroupNorm(2, 6, {.layout = Layout::nhwc})(x), channels_last(nn::GroupNorm(2, 6)(first))) < 1e-5);
  CHECK(difference(nn::InstanceNorm2d(6, {.layout = Layout::nhwc})(x), channels_last(nn::InstanceNorm2d(6)(first))) <
        1e-5);
}

TEST_CASE("the gradients of norms agree with differences") {
  manual_seed(5);
  nn::BatchNorm2d batch(3, {.dtype = f64});
  nn::GroupNorm group(3, 3, {.dtype = f64});
  nn::RMSNorm root({2}, {.dtype = f64});
  auto f = [&](std::span<const Tensor> inputs) { return tanh(root(group(batch(inputs[0])))) * inputs[0]; };
  auto report = debug::gradcheck(f, {randn({3, 3, 2, 2}, {.dtype = f64})});
  INFO(report.text);
  CHECK(report);
}

TEST_CASE("norms name themselves, the caller's line and what does not fit") {
  CHECK_THAT(error_of<ShapeError>([] { nn::BatchNorm3d(0); }), contains("BatchNorm3d: there must be a channel, not 0"));
  CHECK_THAT(error_of<ShapeError>([] { nn::GroupNorm(4, 6); }),
             contains("GroupNorm: 6 channels cannot be cut into 4 groups"));
  CHECK_THAT(error_of<ShapeError>([] { nn::InstanceNorm1d(-1); }), contains("InstanceNorm1d: there must be a channel"));
  CHECK_THAT(error_of<ShapeError>([] { nn::RMSNorm({0}); }), contains("RMSNorm: (0,) are no sizes of axes"));
  nn::BatchNorm2d norm(3);
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { norm(ones({2, 3, 4})); });
  CHECK(text == "BatchNorm2d: x (2, 3, 4) is no batch of 3 channels with 2 other axes; at " +
                    to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] {
               nn::BatchNorm1d(3)(ones({2, 4}));
             }),
             contains("x (2, 4) is no batch of 3 channels with 0 or 1 other axes"));
  CHECK_THAT(error_of<ShapeError>([&] { nn::GroupNorm(1, 3)(ones({2, 4})); }), contains("x (2, 4) does not have 3"));
  CHECK_THAT(error_of<ShapeError>([&] {
               nn::InstanceNorm2d(3)(ones({2, 3, 4}));
             }),
             contains("InstanceNorm2d: x (2, 3, 4) is no batch of 3 channels with 2 other axes"));
  CHECK_THROWS_AS(nn::RMSNorm({3})(ones({2, 4})), ShapeError);
}
