#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "examples.h"

namespace reel_bench {

/// A training step of Net(arguments…): total_loss(net, examples) is the sum of their losses.
template <class Net, class Example, class TotalLoss, class... Arguments>
Work train(std::vector<Example> examples, TotalLoss total_loss, Arguments... arguments) {
  reel::manual_seed(examples_seed);
  auto net = std::make_shared<Net>(arguments...);
  auto sgd = std::make_shared<reel::optim::SGD>(net->parameters(), reel::optim::SGDOptions{.learning_rate = 1e-4});
  auto shared = std::make_shared<std::vector<Example>>(std::move(examples));
  return [=] {
    reel::Tape tape;
    reel::Tensor total = total_loss(*net, *shared);
    tape.backward(total);
    sgd->step();
    sgd->zero_grad();
    return static_cast<double>(total.item());
  };
}

/// A training step on examples: Net::loss(example, options) is the loss of one.
template <class Net, class Example, class... Arguments>
Work train_examples(std::vector<Example> examples, const reel::BatchOptions& options, Arguments... arguments) {
  auto total_loss = [options](const Net& net, const std::vector<Example>& all) {
    auto loss = [&](const Example& one) { return net.loss(one, options); };
    return reel::sum(reel::stack(reel::batch_map(all, loss, options)));
  };
  return train<Net>(std::move(examples), total_loss, arguments...);
}

/// The training step that is batched by hand: Net::loss_of_all(examples) is the sum of their losses.
template <class Net, class Example>
Work train_by_hand(std::vector<Example> examples) {
  return train<Net>(std::move(examples),
                    [](const Net& net, const std::vector<Example>& all) { return net.loss_of_all(all); });
}

/// A vector of random class numbers.
std::vector<std::int64_t> random_classes(class Splitmix& random, std::int64_t below, std::size_t count);

}  // namespace reel_bench
