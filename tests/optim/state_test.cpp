#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <functional>
#include <memory>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

using State = std::vector<NamedTensor>;
using Make = std::function<std::unique_ptr<optim::Optimiser>(const std::vector<Tensor>&)>;

template <class Optimiser, class Options>
Make maker(Options options) {
  return [options](const std::vector<Tensor>& parameters) { return std::make_unique<Optimiser>(parameters, options); };
}

const std::pair<const char*, Make> optimisers[] = {
    {"SGD", maker<optim::SGD>(optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.1})},
    {"plain SGD", maker<optim::SGD>(optim::SGDOptions{.learning_rate = 0.1})},
    {"Adam", maker<optim::Adam>(optim::AdamOptions{.learning_rate = 0.1, .amsgrad = true})},
    {"AdamW", maker<optim::AdamW>(optim::AdamWOptions{.learning_rate = 0.1})},
    {"NAdam", maker<optim::NAdam>(optim::NAdamOptions{})},
    {"RAdam", maker<optim::RAdam>(optim::RAdamOptions{})},
    {"Adagrad", maker<optim::Adagrad>(optim::AdagradOptions{.rate_decay = 0.1})},
    {"Adadelta", maker<optim::Adadelta>(optim::AdadeltaOptions{})},
    {"RMSprop", maker<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.9, .centred = true})},
    {"Adamax", maker<optim::Adamax>(optim::AdamaxOptions{})},
    {"Lion", maker<optim::Lion>(optim::LionOptions{})},
    {"LBFGS", maker<optim::LBFGS>(optim::LBFGSOptions{.max_iterations = 2, .history_size = 3})},
};

std::vector<Tensor> parameters() {
  return {tensor({1.0, 2.0, 3.0}).requires_grad(), tensor({{0.5f, -0.5f}}).requires_grad(),
          tensor({5.0f}).requires_grad()};
}

// The third parameter gets its first gradient late.
void train(optim::Optimiser& optimiser, int begin, int end) {
  const std::vector<Tensor>& w = optimiser.parameters();
  for (int t = begin; t < end; ++t)
    optimiser.step([&] {
      Tape tape;
      Tensor loss = sum(exp(w[0] * 0.1) * (t + 1.0)) + to(sum(square(w[1])), f64);
      if (t >= 2) loss = loss + to(sum(square(w[2])), f64);
      tape.backward(loss);
      return loss.item();
    });
}

std::vector<double> values(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& x : tensors)
    for (double value : to(x, f64).to_vector<double>()) all.push_back(value);
  return all;
}

State with(State state, const std::string& name, const Tensor& value) {
  for (NamedTensor& named : state)
    if (named.name == name) named.tensor = value;
  return state;
}

State without(State state, const std::string& name) {
  std::erase_if(state, [&](const NamedTensor& named) { return named.name == name; });
  return state;
}

}  // namespace

TEST_CASE("training goes on to the bit from a state in a file, at any step") {
  reel_test::Folder folder;
  for (const auto& [name, make] : optimisers)
    for (int stop : {0, 1, 4}) {
      CAPTURE(name, stop);
      std::vector<Tensor> whole = parameters(), first = parameters();
      auto one = make(whole), before = make(first);
      train(*one, 0, 8);
      train(*before, 0, stop);
      io::save(folder.file(), before->state());
      State state = before->state();
      std::vector<Tensor> second;
      for (const Tensor& w : first) second.push_back(copy(stop_gradient(w)).requires_grad());
      train(*before, stop, 8);
      auto after = make(second);
      after->set_learning_rate(0.7);
      // The state and the file hold copies.
      after->load_state(stop == 1 ? state : io::load(folder.file()).tensors);
      CHECK(after->learning_rate() == one->learning_rate());
      train(*after, stop, 8);
      CHECK(values(second) == values(whole));
      CHECK(values(first) == values(whole));
    }
}

TEST_CASE("a state names what it holds") {
  std::vector<Tensor> w = parameters();
  optim::Adam adam(w);
  adam.add_group({ones({1}).requires_grad()});
  train(adam, 0, 1);
  std::vector<std::string> names;
  for (const NamedTensor& named : adam.state()) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"optimiser", "steps", "groups", "learning_rate", "momentum", "0.mean",
                                          "0.square", "1.mean", "1.square"});
  CHECK(adam.state()[1].tensor.to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 0, 0});
  CHECK(adam.state()[2].tensor.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 0, 0, 1});
}

TEST_CASE("a state that does not fit is refused with what is wrong, and changes nothing") {
  std::vector<Tensor> w = parameters();
  optim::Adam adam(w, {.learning_rate = 0.5});
  train(adam, 0, 2);
  State good = adam.state();
  auto text = [&](const State& state) { return error_of<Error>([&] { adam.load_state(state); }); };
  CHECK_THAT(text(without(good, "1.square")), contains("Adam: the state lacks '1.square'"));
  CHECK_THAT(text(without(good, "steps")), contains("the state lacks 'steps'"));
  CHECK_THAT(text(with(good, "0.mean", zeros({4}, {.dtype = f64}))),
             contains("the state's '0.mean', (4,) f64, does not fit: the shape has to be (3,)"));
  CHECK_THAT(text(with(good, "0.mean", zeros({3}))), contains("(3,) f32, does not fit: it has to be f64"));
  CHECK_THAT(text(with(good, "0.mean", Tensor())), contains("'0.mean' is an undefined tensor"));
  CHECK_THAT(text(with(good, "learning_rate", tensor({-1.0}))), contains("the learning rate -1"));
  CHECK_THAT(text(with(good, "momentum", tensor({2.0}))), contains("the momentum 2 lies outside"));
  CHECK_THAT(text(with(good, "steps", tensor(std::vector<std::int64_t>{1, -1, 0}))), contains("a count of -1"));
  State more = good;
  more.push_back({"2.mean", zeros({1})});
  CHECK_THAT(text(more), contains("the state's '2.mean' is not known here"));
  more.back().name = "\x1b[2J";
  CHECK_THAT(text(more), contains("the state's '\\u{1b}[2J' is not known here"));
  CHECK_THAT(text(with(good, "optimiser", tensor(std::vector<std::uint8_t>{7, 27}))), contains("is no plain text"));
  CHECK_THAT(text(without(good, "optimiser")), contains("the state lacks 'optimiser'"));
  CHECK(adam.learning_rate() == 0.5);
  State still = adam.state();
  for (std::size_t i = 0; i < good.size(); ++i) CHECK(values({good[i].tensor}) == values({still[i].tensor}));
}

TEST_CASE("an optimiser refuses the state of every other kind, also one with its own names, and changes nothing") {
  for (const auto& [name, make] : optimisers)
    for (const auto& [other_name, make_other] : optimisers) {
      std::vector<Tensor> w = parameters();
      auto one = make(w), other = make_other(w);
      train(*one, 0, 1);
      train(*other, 0, 2);
      State before = one->state(), state = other->state();
      std::string kind, other_kind;
      for (std::uint8_t letter : before[0].tensor.to_vector<std::uint8_t>()) kind += static_cast<char>(letter);
      for (std::uint8_t letter : state[0].tensor.to_vector<std::uint8_t>()) other_kind += static_cast<char>(letter);
      if (kind == other_kind) continue;
      CAPTURE(name, other_name);
      CHECK_THAT(error_of<Error>([&] { one->load_state(state); }),
                 contains(kind + ": the state is one of " + other_kind + ", which it cannot go on from"));
      State after = one->state();
      REQUIRE(after.size() == before.size());
      for (std::size_t i = 0; i < before.size(); ++i) {
        CHECK(after[i].name == before[i].name);
        CHECK(values({after[i].tensor}) == values({before[i].tensor}));
      }
    }
}

TEST_CASE("a state of another number of parameters or groups, or of other groups, is refused with what differs") {
  auto in_groups = [](const std::vector<std::size_t>& sizes) {
    std::unique_ptr<optim::Adam> adam;
    for (std::size_t size : sizes) {
      std::vector<Tensor> parameters;
      for (std::size_t i = 0; i < size; ++i) parameters.push_back(ones({2}).requires_grad());
      if (adam)
        adam->add_group(parameters, {.learning_rate = 7});
      else
        adam = std::make_unique<optim::Adam>(parameters);
    }
    for (const Tensor& parameter : adam->parameters()) parameter.set_grad(ones({2}));
    adam->step();
    return adam;
  };
  auto adam = in_groups({1, 2});
  State before = adam->state();
  auto text = [&](const std::vector<std::size_t>& sizes) {
    return error_of<Error>([&] { adam->load_state(in_groups(sizes)->state()); });
  };
  CHECK_THAT(text({1, 1}), contains("Adam: the state is of 2 parameters, not of 3"));
  CHECK_THAT(text({3}), contains("Adam: the state is of 1 groups of parameters, not of 2"));
  CHECK_THAT(text({1, 1, 1}), contains("Adam: the state is of 3 groups of parameters, not of 2"));
  CHECK_THAT(text({2, 1}), contains("Adam: the state's parameters are divided into groups in another way"));
  CHECK(text({1, 2}).empty());
  State after = adam->state();
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(values({after[i].tensor}) == values({before[i].tensor}));
}

TEST_CASE("Adam with amsgrad refuses a state without, and one without goes on from a state with") {
  std::vector<Tensor> w = parameters();
  optim::Adam plain(w), largest(w, {.amsgrad = true});
  train(plain, 0, 2);
  train(largest, 0, 2);
  CHECK_THAT(error_of<Error>([&] { largest.load_state(plain.state()); }),
             contains("Adam: the state lacks '0.largest_square'"));
  CHECK_NOTHROW(plain.load_state(largest.state()));
}

TEST_CASE("an option that is set later saves what it needs") {
  std::vector<Tensor> w = parameters();
  optim::Adam adam(w);
  train(adam, 0, 1);
  adam.set_options(0, {.amsgrad = true});
  optim::Adam other(parameters(), {.amsgrad = true});
  other.load_state(adam.state());
  CHECK(other.state().size() == adam.state().size());
}

namespace {

// Steps with these momenta, each set before its step; the optimiser is replaced before step `stop` by one that has loaded
// its state, after the step's momentum was set.
std::vector<double> trained_with(const Make& make, const std::vector<double>& momenta, std::size_t stop) {
  Tensor w = tensor({1.0, 2.0}).requires_grad();
  auto optimiser = make({w});
  for (std::size_t t = 0; t < momenta.size(); ++t) {
    optimiser->set_momentum(0, momenta[t]);
    if (t == stop) {
      State state = optimiser->state();
      optimiser = make({w});
      optimiser->load_state(state);
    }
    w.set_grad(tensor({1.0 + static_cast<double>(t), 3.0}));
    optimiser->step();
  }
  return values({w});
}

}  // namespace

TEST_CASE("a velocity outlives a momentum of 0, also in a state") {
  const std::pair<const char*, Make> with_velocities[] = {
      {"SGD", maker<optim::SGD>(optim::SGDOptions{.learning_rate = 0.1, .momentum = 0.5, .dampening = 0.25})},
      {"RMSprop", maker<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.5})},
      {"SGD without", maker<optim::SGD>(optim::SGDOptions{.learning_rate = 0.1, .dampening = 0.25})}};
  const std::vector<double> courses[] = {{0.9, 0.9, 0, 0, 0.9, 0.9}, {0, 0, 0.9, 0.9, 0, 0.9}};
  for (const auto& [name, make] : with_velocities)
    for (const std::vector<double>& momenta : courses)
      for (std::size_t stop = 0; stop < momenta.size(); ++stop) {
        CAPTURE(name, stop);
        CHECK(trained_with(make, momenta, stop) == trained_with(make, momenta, momenta.size()));
      }
}

TEST_CASE("a state needs the velocity that its own momentum needs") {
  Tensor w = tensor({1.0, 2.0}).requires_grad();
  optim::SGD with({w}, {.momentum = 0.9}), without_any({w});
  w.set_grad(tensor({1.0, 1.0}));
  with.step();
  without_any.load_state(with.state());
  CHECK(without_any.momentum() == 0.9);
  CHECK_THAT(error_of<Error>([&] { without_any.load_state(without(with.state(), "0.velocity")); }),
             contains("SGD: the state lacks '0.velocity'"));
}
