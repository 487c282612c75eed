#include <utility>
#include <vector>

#include "catch.h"
#include "cuda/gpu.h"

namespace reel_test {

using namespace reel;

namespace {

struct Net : nn::Module {
  nn::Linear first, second;

  explicit Net(std::int64_t in) : first(*this, "first", in, 8), second(*this, "second", 8, 1) {}
  Tensor operator()(const Tensor& x) const { return second(dropout(tanh(first(x)), {.probability = 0.25})); }
};

Tensor batch(int number, std::int64_t columns) {
  Generator generator(static_cast<std::uint64_t>(100 + number));
  return randn({4, columns}, {.device = gpu, .generator = &generator});
}

std::vector<std::vector<float>> values_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::vector<float>> values;
  for (const NamedTensor& named : tensors) values.push_back(named.tensor.to_vector<float>());
  return values;
}

// Trains with such an optimiser; returns the final parameters and the loss of each step.
template <class Optimiser, class Options>
struct Training {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;
  std::uint64_t calls = 0;

  Training(bool replays, Options options) {
    manual_seed(7);
    DeviceGuard guard(gpu);
    Net net(3);
    Optimiser optimiser(net.parameters(), options);
    optim::MovingAverage average(net.parameters(), {.decay = 0.9, .warms_up = true});
    auto step = [&](std::span<const Tensor> given) {
      optimiser.zero_grad();
      Tape tape;
      Tensor loss = mean(square(net(given[0]) - given[1]));
      tape.backward(loss);
      optimiser.step();
      average.update();
      return loss;
    };
    cuda::Graph graph(step, {batch(0, 3), batch(50, 1)});
    for (int i = 0; i < 6; ++i) {
      if (i == 4) optimiser.set_learning_rate(0.5 * options.learning_rate);
      std::vector<Tensor> given{batch(i, 3), batch(50 + i, 1)};
      losses.push_back((replays ? graph(given) : step(given)).template item<float>());
    }
    CHECK(graph.is_recorded() == replays);
    parameters = values_of(net.named_parameters());
    for (const NamedTensor& named : optimiser.state())
      if (named.tensor.dtype() == f32 || named.name == "steps")
        parameters.push_back(to(named.tensor, f32).template to_vector<float>());
    for (const NamedTensor& named : average.state())
      if (named.tensor.dtype() == f32) parameters.push_back(named.tensor.template to_vector<float>());
    calls = default_generator().calls();
  }
};

struct OwnOptions {
  double learning_rate = 0.25;
};

struct OwnMomentum : optim::CustomOptimiser<OwnOptions> {
  explicit OwnMomentum(std::vector<Tensor> parameters) : CustomOptimiser("OwnMomentum", {"velocity"}) {
    add_group(std::move(parameters));
  }
  void update(Tensor& w, Tensor g, std::span<Tensor> state, const OwnOptions& o, std::int64_t) const override {
    state[0] = 0.5 * state[0] + g;
    w -= o.learning_rate * state[0];
  }
};

template <class Optimiser, class Options>
void check_training(Options options) {
  Training<Optimiser, Options> plain(false, options), replayed(true, options);
  CHECK(plain.losses == replayed.losses);
  CHECK(plain.parameters == replayed.parameters);
  CHECK(plain.calls == replayed.calls);
}

}  // namespace

TEST_CASE("a replayed training gives to the bit what the steps give one by one") {
  if (lacks_device()) return;
  SECTION("SGD") { check_training<optim::SGD>(optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.9}); }
  SECTION("Adam") { check_training<optim::Adam>(optim::AdamOptions{.learning_rate = 0.1}); }
  SECTION("NAdam") { check_training<optim::NAdam>(optim::NAdamOptions{.learning_rate = 0.1}); }
  SECTION("RMSprop") { check_training<optim::RMSprop>(optim::RMSpropOptions{.learning_rate = 0.01}); }
  SECTION("Lion") { check_training<optim::Lion>(optim::LionOptions{.learning_rate = 0.01}); }
}

TEST_CASE("a replayed step of more parameters than fit the arguments of a kernel changes each of them") {
  if (lacks_device()) return;
  auto trained = [](bool replays) {
    Generator generator(3);
    std::vector<Tensor> parameters;
    for (int i = 0; i < 150; ++i)
      parameters.push_back(randn({3}, {.device = gpu, .generator = &generator}).requires_grad());
    optim::Adam adam(parameters, {.learning_rate = 0.1, .amsgrad = true});
    auto step = [&](std::span<const Tensor> given) {
      adam.zero_grad();
      Tape tape;
      Tensor loss = sum(square(concat(parameters) * given[0]));
      tape.backward(loss);
      adam.step();
      return loss;
    };
    Tensor x = arange(450, {.dtype = f32, .device = gpu});
    cuda::Graph graph(step, {x});
    for (int i = 0; i < 4; ++i) static_cast<void>(replays ? graph({x}) : step(std::vector<Tensor>{x}));
    std::vector<float> values;
    for (const Tensor& parameter : parameters)
      for (float value : parameter.to_vector<float>()) values.push_back(value);
    return values;
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE("each replay draws anew, and from where the generator is") {
  if (lacks_device()) return;
  cuda::Graph graph([](std::span<const Tensor> x) { return x[0] + rand_like(x[0]); }, {zeros({8}, {.device = gpu})});
  auto draw = [&] { return graph({zeros({8}, {.device = gpu})}).to_vector<float>(); };
  manual_seed(3);
  std::vector<std::vector<float>> first{draw(), draw(), draw(), draw()};
  CHECK(first[2] != first[3]);
  manual_seed(3);
  for (const auto& expected : first) CHECK(draw() == expected);
  manual_seed(4);
  CHECK(draw() != first[0]);
  manual_seed(3);
  CHECK(rand({8}, {.device = gpu}).to_vector<float>() == first[0]);
}

TEST_CASE("results belong to the caller, and freed memory is not written to") {
  if (lacks_device()) return;
  Tensor weight = full({4}, 2, {.device = gpu});
  cuda::Graph graph([weight](std::span<const Tensor> x) { return square(x[0] * weight) + x[0]; },
                    {zeros({4}, {.device = gpu})});
  weight.reset();
  std::vector<Tensor> results;
  for (float number : {1.0f, 2.0f, 3.0f, 4.0f}) results.push_back(graph({full({4}, number, {.device = gpu})}));
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(full({4}, -1, {.device = gpu}));
  graph({full({4}, 9, {.device = gpu})});
  for (std::size_t i = 0; i < results.size(); ++i) {
    float number = static_cast<float>(i + 1);
    CHECK(results[i].to_vector<float>() == std::vector<float>(4, 4 * number * number + number));
  }
  for (const Tensor& other : others) CHECK(other.to_vector<float>() == std::vector<float>(4, -1));
}

TEST_CASE("states are carried in place, and what replays overwrite counts as overwritten") {
  if (lacks_device()) return;
  Tensor state = zeros({2}, {.device = gpu});
  cuda::Graph graph(
      [state](std::span<const Tensor> x) {
        add_(state, x[0]);
        return state * 1;
      },
      {ones({2}, {.device = gpu})});
  for (int i = 1; i <= 4; ++i)
    CHECK(graph({ones({2}, {.device = gpu})}).to_vector<float>() == std::vector<float>(2, static_cast<float>(i)));
  Tensor y = ones({2}, {.device = gpu}).requires_grad();
  Tape tape;
  Tensor product = y * state;
  {
    NoRecord pause;
    // A graph cannot be replayed while a tape is open, so it cannot overwrite saved values.
  }
  CHECK_THROWS_WITH(graph({ones({2}, {.device = gpu})}), contains("a tape is open"));
}

TEST_CASE("inputs of another shape or dtype are refused with both") {
  if (lacks_device()) return;
  cuda::Graph graph([](std::span<const Tensor> x) { return x[0] + 1; }, {zeros({2, 3}, {.device = gpu})});
  CHECK_THROWS_WITH(graph({zeros({3, 2}, {.device = gpu})}), contains("(3, 2) f32") && contains("(2, 3) f32"));
  CHECK_THROWS_AS(graph({zeros({2, 3}, {.dtype = f64, .device = gpu})}), DTypeError);
  CHECK_THROWS_WITH(graph({}), contains("takes 1 inputs, not 0"));
  CHECK_THROWS_AS(cuda::Graph([](std::span<const Tensor> x) { return x[0]; }, {zeros({2}, {.device = cpu})}),
                  DeviceError);
  CHECK(graph({zeros({2, 3}, {.device = cpu})}).to_vector<float>() == std::vector<float>(6, 1));
}

TEST_CASE("what waits, or copies from the CPU, cannot be recorded, and the op is named") {
  if (lacks_device()) return;
  Tensor x = ones({3}, {.device = gpu});
  auto error_in = [&](auto function) {
    cuda::Graph graph(function, {x});
    graph({x});
    std::string text = error_of<DeviceError>([&] { graph({x}); });
    // Later ops work.
    CHECK((x + 1).to_vector<float>() == std::vector<float>(3, 2));
    return text;
  };
  using Given = std::span<const Tensor>;
  CHECK_THAT(error_in([](Given x) { return x[0] * sum(x[0]).item(); }), contains("waits for the values of a tensor"));
  CHECK_THAT(error_in([](Given x) { return nonzero(x[0]); }),
             contains("waits for the number of elements that are not 0"));
  CHECK_THAT(error_in([](Given x) {
               return x[0] + to(tensor({1.0f, 2.0f, 3.0f}), gpu);
             }),
             contains("numbers of the CPU are copied"));
  Generator own(5);
  CHECK_THAT(error_in([&own](Given x) { return x[0] + rand_like(x[0], {.generator = &own}); }),
             contains("a generator of its own"));
}

TEST_CASE("a graph refuses gradients and optimisers' memories that would start anew at each replay") {
  if (lacks_device()) return;
  Tensor w = ones({3}, {.device = gpu}).requires_grad(), x = ones({3}, {.device = gpu});
  {
    cuda::Graph graph(
        [&](std::span<const Tensor> x) {
          Tape tape;
          Tensor loss = sum(w * x[0]);
          tape.backward(loss);
          return loss;
        },
        {x});
    graph({x});
    CHECK_THROWS_WITH(graph({x}), contains("call zero_grad()"));
  }
  w.set_grad(ones({3}, {.device = gpu}));
  {
    optim::Adam adam({w});
    bool steps = false;
    cuda::Graph graph(
        [&](std::span<const Tensor> x) {
          if (steps) adam.step();
          return x[0] + 1;
        },
        {x});
    graph({x});
    steps = true;
    CHECK_THROWS_WITH(graph({x}), contains("makes its first step while a graph is recorded"));
  }
}

TEST_CASE("an optimiser whose replayed step is gone, or has become another one, is an error") {
  if (lacks_device()) return;
  Tensor w = ones({3}, {.device = gpu}).requires_grad(), x = ones({3}, {.device = gpu});
  w.set_grad(ones({3}, {.device = gpu}));
  auto sgd = std::make_unique<optim::SGD>(std::vector<Tensor>{w}, optim::SGDOptions{.learning_rate = 1});
  cuda::Graph graph(
      [&](std::span<const Tensor> x) {
        sgd->step();
        return x[0] + w;
      },
      {x});
  for (int i = 0; i < 3; ++i) CHECK(graph({x}).to_vector<float>() == std::vector<float>(3, 1 - static_cast<float>(i)));
  sgd->set_momentum(0, 0.5);
  CHECK_THROWS_WITH(graph({x}), contains("record it again"));
  sgd.reset();
  CHECK_THROWS_WITH(graph({x}), contains("is there no more"));
}

TEST_CASE("an optimiser of one's own makes the CPU's steps on a device, and none while a graph is recorded") {
  if (lacks_device()) return;
  auto train = [](Device device) {
    Tensor w = to(tensor({1.0f, -2.0f, 3.0f}), device).requires_grad();
    OwnMomentum momentum({w});
    for (int step = 0; step < 4; ++step) {
      w.set_grad(stop_gradient(w) * 0.5);
      momentum.step();
    }
    return std::pair{w.to_vector<float>(), momentum.state().back().tensor.to_vector<float>()};
  };
  CHECK(train(gpu) == train(cpu));
  Tensor w = ones({3}, {.device = gpu}).requires_grad(), x = ones({3}, {.device = gpu});
  w.set_grad(ones({3}, {.device = gpu}));
  OwnMomentum momentum({w});
  cuda::Graph graph(
      [&](std::span<const Tensor> x) {
        momentum.step();
        return x[0] + w;
      },
      {x});
  graph({x});
  CHECK_THROWS_WITH(graph({x}), contains("OwnMomentum: its step is made by ops"));
}

TEST_CASE("the memory of a graph goes back when it and its results are gone") {
  if (lacks_device()) return;
  cuda::release_memory_cache(gpu);
  std::size_t before = cuda::memory_statistics(gpu).used;
  {
    Tensor x = ones({1000}, {.device = gpu}), w = ones({1000}, {.device = gpu}).requires_grad();
    cuda::Graph graph(
        [&](std::span<const Tensor> x) {
          w.set_grad({});
          Tape tape;
          Tensor loss = sum(square(w * x[0]));
          tape.backward(loss);
          return loss;
        },
        {x});
    for (int i = 0; i < 3; ++i) graph({x});
  }
  CHECK(cuda::memory_statistics(gpu).used == before);
}

}  // namespace reel_test
