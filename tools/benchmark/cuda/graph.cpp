#include <memory>

#include "cases.h"

namespace reel_bench {

using namespace reel;

namespace {

using Step = std::function<Tensor(const Tensor& x)>;

// The step as one graph; on the CPU, which has no graphs, without.
std::function<void()> replay(const Step& step, const Tensor& x) {
  if (x.device() == cpu) return [=] { step(x); };
  auto graph =
      std::make_shared<cuda::Graph>([=](std::span<const Tensor> inputs) { return step(inputs[0]); }, std::vector{x});
  return [=] { (*graph)({x}); };
}

struct Perceptron : nn::Module {
  nn::Linear first{*this, "first", 784, 1024}, second{*this, "second", 1024, 1024}, third{*this, "third", 1024, 10};

  Tensor operator()(const Arg& x) const { return third(relu(second(relu(first(x))))); }
};

// A step of training 784-1024-1024-10 on 64 examples, with Adam.
std::pair<Step, Tensor> training(Device device) {
  DeviceGuard guard(device);
  auto net = std::make_shared<Perceptron>();
  auto adam = std::make_shared<optim::Adam>(net->parameters());
  Tensor target = randint(0, 10, {64});
  Step step = [=](const Tensor& x) {
    adam->zero_grad();
    Tape tape;
    Tensor loss = cross_entropy((*net)(x), target);
    tape.backward(loss);
    adam->step();
    return loss;
  };
  return {step, randn({64, 784})};
}

}  // namespace

std::vector<CudaCase> graph_cases(Device device) {
  std::string name = "training 784-1024-1024-10, batch 64, Adam";
  return {{"training", name, 1, 0,
           [=] {
             auto [step, x] = training(device);
             return [step = step, x = x] { step(x); };
           }},
          {"training", name + ", as a CUDA graph", 1, 0, [=] {
             auto [step, x] = training(device);
             return replay(step, x);
           }}};
}

}  // namespace reel_bench
