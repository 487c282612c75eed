#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "../models/drawn.h"
#include "models.h"

namespace reel_bench {

namespace {

using Parameters = std::vector<at::Tensor>;

at::Tensor made(std::uint64_t seed, std::int64_t fan_in, const std::vector<std::int64_t>& sizes) {
  return torch_drawn(seed, 1 / std::sqrt(static_cast<float>(fan_in)), sizes);
}

// Weight and bias of a layer, the weight in torch::nn::Linear's layout.
void add_linear(Parameters& parameters, std::uint64_t seed, std::int64_t in, std::int64_t out) {
  parameters.push_back(made(seed, in, {in, out}).t().contiguous());
  parameters.push_back(made(seed + 1, in, {out}));
}

// The update of torch::optim::SGD; resets the gradients to none.
void descend(const Parameters& parameters, double learning_rate) {
  at::NoGradGuard pause;
  for (at::Tensor parameter : parameters) {
    parameter.add_(parameter.grad(), -learning_rate);
    parameter.mutable_grad() = at::Tensor();
  }
}

template <class Net>
Work training(const Parameters& parameters, const at::Tensor& x, Net net) {
  for (at::Tensor parameter : parameters) parameter.requires_grad_();
  std::vector<std::int64_t> classes = drawn_classes(12, 10, batch_size);
  at::Tensor labels = at::tensor(classes, at::kLong);
  return [=] {
    at::Tensor loss = at::cross_entropy_loss(net(x, parameters), labels);
    loss.backward();
    descend(parameters, 0.01);
    return loss.item<double>();
  };
}

}  // namespace

Work torch_mlp() {
  Parameters parameters;
  add_linear(parameters, 1, 784, 1024);
  add_linear(parameters, 3, 1024, 1024);
  add_linear(parameters, 5, 1024, 10);
  return training(parameters, torch_drawn(11, 1, {batch_size, 784}), [](const at::Tensor& x, const Parameters& p) {
    at::Tensor hidden = at::relu(at::linear(at::relu(at::linear(x, p[0], p[1])), p[2], p[3]));
    return at::linear(hidden, p[4], p[5]);
  });
}

Work torch_cnn() {
  Parameters parameters{made(1, 9, {32, 1, 3, 3}), made(2, 9, {32}), made(3, 288, {64, 32, 3, 3}), made(4, 288, {64})};
  add_linear(parameters, 5, 9216, 128);
  add_linear(parameters, 7, 128, 10);
  return training(parameters, torch_drawn(11, 1, {batch_size, 1, 28, 28}),
                  [](const at::Tensor& x, const Parameters& p) {
                    at::Tensor y = at::relu(at::conv2d(at::relu(at::conv2d(x, p[0], p[1])), p[2], p[3]));
                    y = at::max_pool2d(y, 2).reshape({batch_size, 9216});
                    return at::linear(at::relu(at::linear(y, p[4], p[5])), p[6], p[7]);
                  });
}

Work torch_lstm_by_hand(std::int64_t batch, std::int64_t size) {
  float bound = 1 / std::sqrt(static_cast<float>(size));
  std::vector<at::Tensor> inputs = torch_drawn(1, 1, {lstm_steps, batch, size}).unbind(0);
  at::Tensor weight = torch_drawn(2, bound, {2 * size, 4 * size}).requires_grad_(),
             bias = torch_drawn(3, bound, {4 * size}).requires_grad_();
  return [=] {
    at::Tensor h = at::zeros({batch, size}), c = at::zeros({batch, size});
    for (const at::Tensor& x : inputs) {
      std::vector<at::Tensor> gates = at::addmm(bias, at::cat({x, h}, 1), weight).chunk(4, 1);
      c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
      h = at::sigmoid(gates[3]) * at::tanh(c);
    }
    at::Tensor loss = h.sum();
    double found = loss.item<double>();
    loss.backward();
    for (at::Tensor one : {weight, bias}) one.mutable_grad() = at::Tensor();
    return found;
  };
}

Work torch_lstm_layer(int steps, std::int64_t batch, std::int64_t size) {
  float bound = 1 / std::sqrt(static_cast<float>(size));
  at::Tensor x = torch_drawn(1, 1, {steps, batch, size});
  Parameters weights{torch_drawn(2, bound, {size, 4 * size}).t().contiguous(),
                     torch_drawn(3, bound, {size, 4 * size}).t().contiguous(), torch_drawn(4, bound, {4 * size}),
                     at::zeros({4 * size})};
  Parameters sources = weights;
  sources.push_back(x);
  for (at::Tensor one : sources) one.requires_grad_();
  at::Tensor seed = at::ones({steps, batch, size});
  return [=] {
    at::Tensor zeros = at::zeros({1, batch, size});
    at::Tensor output = std::get<0>(at::lstm(x, {zeros, zeros}, weights, true, 1, 0, true, false, false));
    float found = output.data_ptr<float>()[output.numel() - 1];
    output.backward(seed);
    for (at::Tensor one : sources) one.mutable_grad() = at::Tensor();
    return found;
  };
}

}  // namespace reel_bench
