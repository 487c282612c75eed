#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "examples.h"

namespace reel_bench {

/// A training step on examples: Net::loss(example, options) is the loss of one.
template <class Net, class Example>
Work train_examples(std::vector<Example> examples, const reel::BatchOptions& options) {
  reel::manual_seed(examples_seed);
  auto net = std::make_shared<Net>();
  auto sgd = std::make_shared<reel::optim::SGD>(net->parameters(), reel::optim::SGDOptions{.learning_rate = 1e-4});
  auto shared = std::make_shared<std::vector<Example>>(std::move(examples));
  return [=] {
    reel::Tape tape;
    auto loss = [&](const Example& one) { return net->loss(one, options); };
    reel::Tensor total = reel::sum(reel::stack(reel::batch_map(*shared, loss, options)));
    tape.backward(total);
    sgd->step();
    sgd->zero_grad();
    return static_cast<double>(total.item());
  };
}

/// A vector of random class numbers.
std::vector<std::int64_t> random_classes(class Splitmix& random, std::int64_t below, std::size_t count);

}  // namespace reel_bench
