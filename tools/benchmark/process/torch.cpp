// libtorch's counterpart of reel.cpp.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "process.h"

namespace {

void one_tensor() { at::zeros({4, 4}); }

void first_step() {
  at::Tensor x = at::ones({4, 8}), w = at::full({8, 8}, 0.1).requires_grad_();
  at::sum(at::tanh(at::mm(x, w))).backward();
}

constexpr std::int64_t steps = 200, batch = 32, size = 512;

at::Tensor parameter(at::IntArrayRef sizes) {
  double bound = 1 / std::sqrt(static_cast<double>(size));
  return (at::rand(sizes) * (2 * bound) - bound).requires_grad_();
}

void descend(const std::vector<at::Tensor>& parameters) {
  at::NoGradGuard pause;
  for (at::Tensor parameter : parameters) {
    parameter.add_(parameter.grad(), -0.01);
    parameter.mutable_grad() = at::Tensor();
  }
}

void lstm_step() {
  at::Tensor weight = parameter({2 * size, 4 * size}), bias = parameter({4 * size});
  at::Tensor x = at::rand({steps, batch, size});
  for (int step = 0; step < 2; ++step) {
    at::Tensor h = at::zeros({batch, size}), c = at::zeros({batch, size});
    for (std::int64_t t = 0; t < steps; ++t) {
      std::vector<at::Tensor> gates = at::addmm(bias, at::cat({x.select(0, t), h}, 1), weight).chunk(4, 1);
      c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
      h = at::sigmoid(gates[3]) * at::tanh(c);
    }
    h.sum().backward();
    descend({weight, bias});
  }
}

void lstm_layer_step() {
  std::vector<at::Tensor> weights{parameter({4 * size, size}), parameter({4 * size, size}), parameter({4 * size}),
                                  parameter({4 * size})};
  at::Tensor x = at::rand({steps, batch, size});
  for (int step = 0; step < 2; ++step) {
    at::Tensor zeros = at::zeros({1, batch, size});
    std::get<1>(at::lstm(x, {zeros, zeros}, weights, true, 1, 0, true, false, false)).sum().backward();
    descend(weights);
  }
}

std::string classifier_file() { return reel_bench::file_beside("classifier.pickle"); }

void save_classifier() {
  std::vector<at::Tensor> weights{at::rand({128, 1024}) - 0.5, at::rand({256, 1024}) - 0.5, at::rand({1024}),
                                  at::rand({256, 10}) - 0.5, at::rand({10})};
  std::vector<char> bytes = torch::jit::pickle_save(weights);
  std::ofstream(classifier_file(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void predict() {
  std::ifstream file(classifier_file(), std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<at::Tensor> w = torch::jit::pickle_load(bytes).toTensorVector();
  at::NoGradGuard pause;
  at::Tensor x = at::ones({50, 1, 128}), h = at::zeros({1, 256}), c = at::zeros({1, 256});
  for (std::int64_t t = 0; t < 50; ++t) {
    std::vector<at::Tensor> gates = (at::addmm(w[2], x.select(0, t), w[0]) + at::mm(h, w[1])).chunk(4, 1);
    c = at::sigmoid(gates[1]) * c + at::sigmoid(gates[0]) * at::tanh(gates[2]);
    h = at::sigmoid(gates[3]) * at::tanh(c);
  }
  if (!(at::softmax(at::addmm(w[4], h, w[3]), 1).sum().item<double>() > 0.99)) std::exit(1);
}

}  // namespace

int main(int argument_count, char** arguments) {
  return reel_bench::run_task<6>(argument_count, arguments,
                                 {{{"one_tensor", one_tensor},
                                   {"first_step", first_step},
                                   {"lstm_step", lstm_step},
                                   {"lstm_layer_step", lstm_layer_step},
                                   {"save_classifier", save_classifier},
                                   {"predict", predict}}});
}
