#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <reel/reel.h>

#include "catch.h"
#include "temporary_file.h"

namespace reel {
namespace {

using debug::RecordedOp;
using debug::RecordedRun;
using debug::Recording;
using namespace reel_test;

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 2, 3};
  nn::Linear output{*this, "output", 3, 1};

  Tensor operator()(const Arg& x) const { return output(relu(hidden(x))); }
};

void make_step(const std::vector<Tensor>& parameters, optim::Optimiser& optimiser, const Tensor& loss, Tape& tape) {
  tape.backward(loss);
  optimiser.step();
  for (const Tensor& parameter : parameters) parameter.set_grad({});
}

// The names of the updates of a step, sorted.
std::vector<std::string> updates_of(const RecordedRun& run, std::int64_t step) {
  std::vector<std::string> names;
  for (const debug::RecordedUpdate& update : run.updates())
    if (update.step == step) names.emplace_back(update.parameter);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("norms of parameters and gradients with NaN or infinity are recorded as such") {
  TemporaryFile file("run.reel");
  Tensor w = full({3}, 2).requires_grad();
  optim::SGD sgd({w}, {.learning_rate = 0.5});
  const std::vector<double> factors{1, std::numeric_limits<double>::infinity(), 1, std::nan(""), 1};
  {
    Recording recording(file.path());
    for (double factor : factors) {
      Tape tape;
      Tensor loss = sum(slice(w, 0, 0, 1)) * factor;
      make_step({w}, sgd, loss, tape);
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  REQUIRE(run.updates().size() == factors.size());
  const auto& updates = run.updates();
  CHECK(updates[0].weight_norm == Approx(std::sqrt(12.0)));
  CHECK(updates[0].gradient_norm == 1);
  CHECK(updates[0].update_norm == 0.5);
  CHECK(updates[1].gradient_norm == std::numeric_limits<double>::infinity());
  CHECK(updates[1].update_norm == std::numeric_limits<double>::infinity());
  CHECK(updates[2].weight_norm == std::numeric_limits<double>::infinity());
  CHECK(updates[2].gradient_norm == 1);
  CHECK(std::isnan(updates[3].gradient_norm));
  CHECK(std::isnan(updates[4].weight_norm));
}

TEST_CASE("the statistics of a tensor without finite elements are numbers of none") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    static_cast<void>(abs(full({2}, std::nan(""))));
    static_cast<void>(abs(tensor({3.0f, -4.0f, std::nanf("")})));
    static_cast<void>(abs(zeros({0, 4})));
    static_cast<void>(abs(tensor({1.0f, -std::numeric_limits<float>::infinity()})));
  }
  std::vector<debug::RecordedStatistics> found;
  RecordedRun run = RecordedRun::read(file.path());
  for (const RecordedOp& op : run.ops())
    if (op.op == "abs") found.push_back(op.outputs[0].statistics);
  REQUIRE(found.size() == 4);
  CHECK((std::isnan(found[0].norm) && std::isnan(found[0].min) && std::isnan(found[0].norm_of_all())));
  CHECK((found[1].norm == 5 && std::isnan(found[1].norm_of_all())));
  CHECK((std::isnan(found[2].min) && std::isnan(found[2].norm) && found[2].norm_of_all() == 0));
  CHECK((found[3].norm == 1 && found[3].norm_of_all() == std::numeric_limits<double>::infinity()));
}

TEST_CASE("parameters have the names of their model, whether it is made before the recording or after") {
  const std::vector<std::string> names{"hidden.bias", "hidden.weight", "output.bias", "output.weight"};
  bool before = GENERATE(true, false), replaced = GENERATE(true, false);
  TemporaryFile file("run.reel");
  std::optional<Recording> recording;
  if (!before) recording.emplace(file.path());
  Net net;
  if (replaced) net = Net();
  if (before) recording.emplace(file.path());
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  for (int step = 0; step < 2; ++step) {
    Tape tape;
    Tensor loss = sum(net(ones({1, 2})));
    make_step(net.parameters(), sgd, loss, tape);
  }
  recording.reset();
  RecordedRun run = RecordedRun::read(file.path());
  for (std::int64_t step = 0; step < 2; ++step) CHECK(updates_of(run, step) == names);
  std::set<std::string> named;
  for (const RecordedOp& op : run.ops())
    for (const debug::RecordedTensor& output : op.outputs) named.emplace(output.name);
  for (const std::string& name : names) CHECK(named.contains(name));
  CHECK_FALSE(named.contains("weight"));
}

TEST_CASE("two parameters of a recording never share a name") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    Net generator, critic;
    Tensor free = ones({1}).requires_grad(), other = ones({1}).requires_grad();
    optim::SGD first(generator.parameters(), {.learning_rate = 0.1}),
        second(critic.parameters(), {.learning_rate = 0.1}), third({free}, {.learning_rate = 0.1}),
        fourth({other}, {.learning_rate = 0.1});
    for (int step = 0; step < 2; ++step) {
      Tape tape({.persistent = true});
      // No module calls these products, so that nothing says which layers have the weights.
      Tensor x = matmul(ones({1, 2}), generator.hidden.weight), y = matmul(ones({1, 2}), critic.hidden.weight);
      tape.backward(sum(x) + sum(y) + sum(free * other) + sum(generator.output(x)) + sum(critic.output(y)));
      for (optim::Optimiser* optimiser : std::initializer_list<optim::Optimiser*>{&first, &second, &third, &fourth})
        optimiser->step();
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  // Each optimiser's step counts.
  std::vector<std::string> names[2];
  for (std::size_t round = 0; round < 2; ++round)
    for (std::int64_t step = 0; step < 4; ++step)
      for (const std::string& name : updates_of(run, static_cast<std::int64_t>(4 * round) + step))
        names[round].push_back(name);
  CHECK(names[0] == names[1]);
  CHECK(std::set(names[0].begin(), names[0].end()).size() == names[0].size());
  CHECK(names[0].size() == 8);
}

TEST_CASE("a parameter has the name of the model that first uses it, or the one that the program gave it") {
  struct Scale : nn::Module {
    const Tensor* factor = nullptr;  // no parameter of its own
    Tensor operator()(const Arg& x) const {
      return call("Scale", x, [&](const Tensor& x) { return x * *factor; });
    }
  };
  TemporaryFile file("run.reel");
  {
    Net net;
    Scale scale;
    scale.factor = &net.output.bias;
    Recording recording(file.path());
    debug::name(net.hidden.bias, "offset");
    optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
    for (int step = 0; step < 2; ++step) {
      Tape tape;
      // No module calls these ops, so that only the later ones say which layers have the weights.
      Tensor outside = sum(square(net.hidden.weight)) + sum(square(net.hidden.bias));
      Tensor scaled = sum(scale(ones({1, 1})));
      make_step(net.parameters(), sgd, outside + scaled + sum(net(ones({1, 2}))), tape);
    }
  }
  RecordedRun run = RecordedRun::read(file.path());
  for (std::int64_t step = 0; step < 2; ++step)
    CHECK(updates_of(run, step) == std::vector<std::string>{"bias", "hidden.weight", "offset", "output.weight"});
}

TEST_CASE("zeros that come of zeros, as those of an initial state, are no dead units") {
  TemporaryFile file("run.reel");
  {
    Recording recording(file.path());
    Tensor state = zeros({4, 3}), weight = ones({3, 3}), x = ones({4, 3});
    static_cast<void>(to(state, f64));
    static_cast<void>(slice(state, 0, 0, 2));
    static_cast<void>(matmul(state, weight));
    static_cast<void>(concat({state, x}, 1));
    static_cast<void>(reshape(zeros({2, 6}), {4, 3}));
    static_cast<void>(relu(x * -1));
  }
  RecordedRun run = RecordedRun::read(file.path());
  int dead = 0;
  for (const RecordedOp& op : run.ops())
    for (const debug::RecordedTensor& output : op.outputs) {
      INFO(op.op);
      CHECK(output.zero_units.empty() == (op.op != "relu"));
      dead += !output.zero_units.empty();
    }
  CHECK(dead == 1);
}

}  // namespace reel
