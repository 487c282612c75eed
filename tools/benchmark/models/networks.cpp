#include <cmath>

#include "drawn.h"
#include "examples.h"

namespace reel_bench {

using namespace reel;

namespace {

// A parameter whose values other libraries can draw, too.
Tensor made(std::uint64_t seed, std::int64_t fan_in, const Shape& shape) {
  return drawn_tensor(seed, 1 / std::sqrt(static_cast<float>(fan_in)), shape).requires_grad();
}

// A layer whose values are those of seeds `seed` and `seed` + 1.
void set(nn::Linear& layer, std::uint64_t seed) {
  float bound = 1 / std::sqrt(static_cast<float>(layer.weight.size(0)));
  NoRecord pause;
  for (Tensor* parameter : {&layer.weight, &layer.bias}) {
    std::vector<float> values = drawn(seed++, bound, static_cast<std::size_t>(parameter->numel()));
    auto written = parameter->write<float>();
    std::copy(values.begin(), values.end(), written.data());
  }
}

struct MLP : nn::Module {
  nn::Linear first{*this, "first", 784, 1024}, second{*this, "second", 1024, 1024}, last{*this, "last", 1024, 10};

  MLP() {
    set(first, 1);
    set(second, 3);
    set(last, 5);
  }
  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
};

struct CNN : nn::Module {
  nn::Parameter w1{*this, "w1", made(1, 9, {32, 1, 3, 3})}, b1{*this, "b1", made(2, 9, {32})};
  nn::Parameter w2{*this, "w2", made(3, 288, {64, 32, 3, 3})}, b2{*this, "b2", made(4, 288, {64})};
  nn::Linear first{*this, "first", 9216, 128}, last{*this, "last", 128, 10};

  CNN() {
    set(first, 5);
    set(last, 7);
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = max_pool2d(relu(conv2d(relu(conv2d(x, w1, b1)), w2, b2)), 2);
    return last(relu(first(reshape(y, {batch_size, 9216}))));
  }
};

template <class Net>
Work training(const Shape& input) {
  auto net = std::make_shared<Net>();
  auto sgd = std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.learning_rate = 0.01});
  Tensor x = drawn_tensor(11, 1, input), labels = tensor(drawn_classes(12, 10, batch_size));
  return [=] {
    Tape tape;
    Tensor loss = cross_entropy((*net)(x), labels);
    tape.backward(loss);
    sgd->step();
    sgd->zero_grad();
    return loss.item();
  };
}

// Each example is a batch of its own.
template <class Net>
Work training_of_examples(const Shape& input, const BatchOptions& options) {
  auto net = std::make_shared<Net>();
  auto sgd = std::make_shared<optim::SGD>(net->parameters(), optim::SGDOptions{.learning_rate = 1e-4});
  std::vector<std::pair<Tensor, Tensor>> examples;
  for (std::uint64_t i = 0; i < large_examples; ++i)
    examples.emplace_back(drawn_tensor(11 + 2 * i, 1, input), tensor(drawn_classes(12 + 2 * i, 10, batch_size)));
  return [=] {
    Tape tape;
    auto loss = [&](const auto& one) { return cross_entropy((*net)(one.first), one.second); };
    Tensor total = sum(stack(batch_map(examples, loss, options)));
    tape.backward(total);
    sgd->step();
    sgd->zero_grad();
    return total.item();
  };
}

}  // namespace

Work mlp_examples(const BatchOptions& options) { return training_of_examples<MLP>({batch_size, 784}, options); }
Work cnn_examples(const BatchOptions& options) { return training_of_examples<CNN>({batch_size, 1, 28, 28}, options); }

Work mlp() { return training<MLP>({batch_size, 784}); }
Work cnn() { return training<CNN>({batch_size, 1, 28, 28}); }

}  // namespace reel_bench
