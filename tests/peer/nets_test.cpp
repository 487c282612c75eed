#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include "peer/layers.h"

namespace reel_test {

using namespace reel;

namespace {

// Layers whose weights have equal layouts in both libraries, and a bias.
template <class Ours, class Theirs>
void add_same(std::vector<ParameterPair>& pairs, Ours& ours, Theirs& theirs) {
  pairs.push_back(same(ours.weight, theirs->weight));
  pairs.push_back(same(ours.bias, theirs->bias));
}

template <class Ours, class Theirs>
void forget_statistics(Ours& ours, Theirs& theirs) {
  NoRecord pause;
  fill_(ours.running_mean, 0);
  fill_(ours.running_variance, 1);
  at::NoGradGuard their_pause;
  theirs->running_mean.zero_();
  theirs->running_var.fill_(1);
}

struct OurNet : nn::Module {
  nn::Conv2d first{*this, "first", 3, 8, 3, {.padding = 1}};
  nn::BatchNorm2d norm{*this, "norm", 8};
  nn::MaxPool2d pool{*this, "pool", 2};
  nn::Conv2d second{*this, "second", 8, 12, {3, 2}, {.stride = {2, 1}, .dilation = {1, 2}, .groups = 4}};
  nn::GroupNorm group{*this, "group", 3, 12};
  nn::ConvTransposed2d up{*this, "up", 12, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}};
  nn::InstanceNorm2d instance{*this, "instance", 6, {.affine = true}};
  nn::AdaptiveAvgPool2d mean{*this, "mean", {3, 2}};
  nn::Linear output{*this, "output", 36, 5};

  Tensor operator()(const Tensor& x) const {
    Tensor y = pool(relu(norm(first(x))));
    y = mean(instance(up(relu(group(second(y))))));
    return output(reshape(y, {x.size(0), 36}));
  }
};

struct TheirNet : torch::nn::Module {
  torch::nn::Conv2d first{torch::nn::Conv2dOptions(3, 8, 3).padding(1)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::MaxPool2d pool{2};
  torch::nn::Conv2d second{torch::nn::Conv2dOptions(8, 12, {3, 2}).stride({2, 1}).dilation({1, 2}).groups(4)};
  torch::nn::GroupNorm group{torch::nn::GroupNormOptions(3, 12)};
  torch::nn::ConvTranspose2d up{
      torch::nn::ConvTranspose2dOptions(12, 6, 3).stride(2).padding(1).output_padding(1).groups(2)};
  torch::nn::InstanceNorm2d instance{torch::nn::InstanceNorm2dOptions(6).affine(true)};
  torch::nn::AdaptiveAvgPool2d mean{torch::nn::AdaptiveAvgPool2dOptions({3, 2})};
  torch::nn::Linear output{36, 5};

  TheirNet() {
    register_module("first", first);
    register_module("norm", norm);
    register_module("second", second);
    register_module("group", group);
    register_module("up", up);
    register_module("instance", instance);
    register_module("output", output);
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor y = pool->forward(torch::relu(norm->forward(first->forward(x))));
    y = mean->forward(instance->forward(up->forward(torch::relu(group->forward(second->forward(y))))));
    return output->forward(y.reshape({x.size(0), 36}));
  }
};

void compare_nets(bool training) {
  INFO((training ? "training" : "in use"));
  manual_seed(1);
  OurNet ours;
  TheirNet theirs;
  ours.train(training);
  theirs.train(training);
  std::vector<ParameterPair> pairs;
  add_same(pairs, ours.first, theirs.first);
  add_same(pairs, ours.norm, theirs.norm);
  add_same(pairs, ours.second, theirs.second);
  add_same(pairs, ours.group, theirs.group);
  add_same(pairs, ours.up, theirs.up);
  add_same(pairs, ours.instance, theirs.instance);
  pairs.push_back(transposed(ours.output.weight, theirs.output->weight));
  pairs.push_back(same(ours.output.bias, theirs.output->bias));
  // The second batch starts from the running statistics of the first.
  compare_layers(
      ours, theirs, pairs, {randn({4, 3, 16, 15}) * 2 + 1, randn({4, 3, 16, 15})},
      [&](const std::vector<Tensor>& in) {
        forget_statistics(ours.norm, theirs.norm);
        Tensor first = ours(in[0]), second = ours(in[1]);
        return std::vector<Tensor>{first, second, copy(ours.norm.running_mean), copy(ours.norm.running_variance)};
      },
      [&](const std::vector<at::Tensor>& in) {
        forget_statistics(ours.norm, theirs.norm);
        at::Tensor first = theirs.forward(in[0]), second = theirs.forward(in[1]);
        return std::vector<at::Tensor>{first, second, theirs.norm->running_mean.clone(),
                                       theirs.norm->running_var.clone()};
      });
}

// A convolution, a batch norm and a transposed convolution over `axes` spatial axes.
template <std::size_t axes, class Conv, class Norm, class Up, class TheirConv, class TheirNorm, class TheirUp>
void compare_axes(const Shape& x) {
  manual_seed(2);
  struct Ours : nn::Module {
    Conv conv{*this, "conv", 2, 6, 3, {.stride = 2, .padding = 1}};
    Norm norm{*this, "norm", 6, {.momentum = 0.3, .epsilon = 1e-3}};
    Up up{*this, "up", 6, 3, 2, {.stride = 2}};
  } ours;
  struct Theirs : torch::nn::Module {
    TheirConv conv{torch::nn::ConvOptions<axes>(2, 6, 3).stride(2).padding(1)};
    TheirNorm norm{torch::nn::BatchNormOptions(6).momentum(0.3).eps(1e-3)};
    TheirUp up{torch::nn::ConvTransposeOptions<axes>(6, 3, 2).stride(2)};
    Theirs() {
      this->register_module("conv", conv);
      this->register_module("norm", norm);
      this->register_module("up", up);
    }
  } theirs;
  std::vector<ParameterPair> pairs;
  add_same(pairs, ours.conv, theirs.conv);
  add_same(pairs, ours.norm, theirs.norm);
  add_same(pairs, ours.up, theirs.up);
  compare_layers(
      ours, theirs, pairs, {randn(x)},
      [&](const std::vector<Tensor>& in) {
        forget_statistics(ours.norm, theirs.norm);
        Tensor y = ours.up(ours.norm(ours.conv(in[0])));
        return std::vector<Tensor>{y, copy(ours.norm.running_mean), copy(ours.norm.running_variance)};
      },
      [&](const std::vector<at::Tensor>& in) {
        forget_statistics(ours.norm, theirs.norm);
        at::Tensor y = theirs.up->forward(theirs.norm->forward(theirs.conv->forward(in[0])));
        return std::vector<at::Tensor>{y, theirs.norm->running_mean.clone(), theirs.norm->running_var.clone()};
      });
}

}  // namespace

TEST_CASE("a convolutional net equals libtorch's, its gradients and its running statistics") {
  compare_nets(true);
  compare_nets(false);
}

TEST_CASE("convolutions and batch norms along one and three axes equal libtorch's") {
  compare_axes<1, nn::Conv1d, nn::BatchNorm1d, nn::ConvTransposed1d, torch::nn::Conv1d, torch::nn::BatchNorm1d,
               torch::nn::ConvTranspose1d>({3, 2, 11});
  compare_axes<3, nn::Conv3d, nn::BatchNorm3d, nn::ConvTransposed3d, torch::nn::Conv3d, torch::nn::BatchNorm3d,
               torch::nn::ConvTranspose3d>({2, 2, 5, 6, 7});
}

TEST_CASE("a bilinear layer and learnt slopes equal libtorch's") {
  manual_seed(3);
  struct Ours : nn::Module {
    nn::Bilinear bilinear{*this, "bilinear", 4, 5, 6};
    nn::PReLU slopes{*this, "slopes", 6};
  } ours;
  struct Theirs : torch::nn::Module {
    torch::nn::Bilinear bilinear{4, 5, 6};
    torch::nn::PReLU slopes{torch::nn::PReLUOptions().num_parameters(6)};
    Theirs() {
      register_module("bilinear", bilinear);
      register_module("slopes", slopes);
    }
  } theirs;
  std::vector<ParameterPair> pairs;
  add_same(pairs, ours.bilinear, theirs.bilinear);
  pairs.push_back(same(ours.slopes.weight, theirs.slopes->weight));
  compare_layers(
      ours, theirs, pairs, {randn({7, 4}), randn({7, 5})},
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{ours.slopes(ours.bilinear(in[0], in[1]))}; },
      [&](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{theirs.slopes->forward(theirs.bilinear->forward(in[0], in[1]))};
      });
}

TEST_CASE("embeddings with a padding symbol, and bags of them, equal libtorch's") {
  manual_seed(4);
  const std::vector<std::int64_t> symbols = {3, 0, 1, 1, 5, 0, 3, 4}, starts = {0, 3, 3, 6};
  Tensor indices = tensor(symbols), offsets = tensor(starts);
  at::Tensor their_indices = at::tensor(symbols), their_offsets = at::tensor(starts);
  struct Ours : nn::Module {
    nn::Embedding table{*this, "table", 6, 4, {.padding_index = 0}};
    nn::EmbeddingBag bag{*this, "bag", 6, 4};
  } ours;
  struct Theirs : torch::nn::Module {
    torch::nn::Embedding table{torch::nn::EmbeddingOptions(6, 4).padding_idx(0)};
    torch::nn::EmbeddingBag bag{torch::nn::EmbeddingBagOptions(6, 4).mode(torch::kMean)};
    Theirs() {
      register_module("table", table);
      register_module("bag", bag);
    }
  } theirs;
  std::vector<ParameterPair> pairs{same(ours.table.table, theirs.table->weight),
                                   same(ours.bag.table, theirs.bag->weight)};
  compare_layers(
      ours, theirs, pairs, {randn({8, 4})},
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{tanh(ours.table(indices) * in[0]), tanh(ours.bag(indices, offsets))};
      },
      [&](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{torch::tanh(theirs.table->forward(their_indices) * in[0]),
                                       torch::tanh(theirs.bag->forward(their_indices, their_offsets))};
      });
}

}  // namespace reel_test
