#include <reel/autocast.h>
#include <reel/io.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>
#include <reel/tape.h>

#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "io/folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The example of the header.
#include "examples/optim_custom_1.h"

struct RateOptions {
  double learning_rate = 0.1;
};

// Its update calls a given function, for tests of invalid updates.
struct Scripted : optim::CustomOptimiser<RateOptions> {
  using Function = std::function<void(Tensor& w, const Tensor& g, std::span<Tensor> state, std::int64_t step)>;
  Scripted(std::vector<Tensor> parameters, Function function, std::initializer_list<const char*> state = {"mean"})
      : CustomOptimiser("Scripted", state), function_(std::move(function)) {
    add_group(std::move(parameters));
  }
  void update(Tensor& w, Tensor g, std::span<Tensor> state, const RateOptions&, std::int64_t step) const override {
    function_(w, g, state, step);
  }

 private:
  Function function_;
};

// Adafactor's second moment for matrices: the means over rows and over columns, whose shapes differ from the parameter's.
struct Factored : optim::CustomOptimiser<RateOptions> {
  explicit Factored(std::vector<Tensor> parameters) : CustomOptimiser("Factored", {"rows", "columns", "start"}) {
    add_group(std::move(parameters));
  }
  Tensor initial_state(const Tensor& parameter, std::size_t index, const RateOptions&) const override {
    if (index == 2) return parameter;
    return zeros({parameter.size(static_cast<int>(index))}, {.dtype = f64});
  }
  void update(Tensor& w, Tensor g, std::span<Tensor> state, const RateOptions& o, std::int64_t) const override {
    Tensor squares = to(square(g), f64);
    state[0] += mean(squares, {1});
    state[1] += mean(squares, {0});
    Tensor second = unsqueeze(state[0], 1) * state[1] / mean(state[0]);
    w = state[2] + 0.5 * (w - state[2]) - to(o.learning_rate * to(g, f64) / sqrt(second), w.dtype());
  }
};

std::vector<double> numbers(const Tensor& x) { return to(x, f64).to_vector<double>(); }

Tensor parameter(const std::vector<double>& values, DType dtype = f64) {
  return to(tensor(values), dtype).requires_grad();
}

void give_gradient(const Tensor& w, int step) {
  w.set_grad(to(sin(arange(1.0, 1.0 + static_cast<double>(w.numel())) * step), w.dtype()));
}

}  // namespace

TEST_CASE(
    "the header's example of an optimiser of one's own is Lion, in f32 and f64, with groups and a late gradient") {
  for (DType dtype : {f32, f64}) {
    std::vector<Tensor> own, built_in;
    for (std::vector<Tensor>* list : {&own, &built_in})
      *list = {parameter({1, -2, 0.5}, dtype), parameter({3, 4}, dtype), parameter({5}, dtype)};
    OwnLion lion({own[0], own[1]}, {.learning_rate = 0.1});
    optim::Lion expected({built_in[0], built_in[1]}, {.learning_rate = 0.1});
    lion.add_group({own[2]}, {.learning_rate = 0.3, .beta1 = 0.5, .beta2 = 0.25});
    expected.add_group({built_in[2]}, {.learning_rate = 0.3, .beta1 = 0.5, .beta2 = 0.25});
    for (int step = 1; step <= 20; ++step) {
      for (const std::vector<Tensor>& list : {own, built_in}) {
        give_gradient(list[0], step);
        if (step > 3) give_gradient(list[1], step + 1);
        give_gradient(list[2], step + 2);
      }
      lion.step();
      expected.step();
      for (std::size_t i = 0; i < own.size(); ++i) {
        CAPTURE(step, i);
        for (std::size_t k = 0; k < numbers(own[i]).size(); ++k)
          CHECK(numbers(own[i])[k] == Approx(numbers(built_in[i])[k]).epsilon(1e-6));
        CHECK(own[i].dtype() == dtype);
      }
    }
    CHECK(lion.has_momentum());
    CHECK(lion.momentum(1) == 0.5);
  }
}

TEST_CASE(
    "an optimiser of one's own goes on from its state to the bit, also in a file, and refuses that of another kind") {
  reel_test::Folder folder;
  std::vector<Tensor> whole{parameter({1, -2, 0.5}), parameter({3, 4}, f32)}, parts;
  OwnLion one(whole, {.learning_rate = 0.1});
  auto train = [](OwnLion& lion, int begin, int end) {
    for (int step = begin; step < end; ++step) {
      for (const Tensor& w : lion.parameters()) give_gradient(w, step);
      lion.step();
    }
  };
  train(one, 1, 4);
  for (const Tensor& w : whole) parts.push_back(copy(stop_gradient(w)).requires_grad());
  io::save(folder.file(), one.state());
  std::vector<std::string> names;
  for (const NamedTensor& named : one.state()) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"optimiser", "steps", "learning_rate", "momentum", "0.mean", "1.mean"});
  train(one, 4, 9);
  OwnLion other(parts, {.learning_rate = 7});
  other.load_state(io::load(folder.file()).tensors);
  CHECK(other.learning_rate() == 0.1);
  train(other, 4, 9);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(numbers(parts[i]) == numbers(whole[i]));
  optim::Lion lion(parts);
  CHECK_THAT(error_of<Error>([&] { other.load_state(lion.state()); }),
             contains("OwnLion: the state is one of Lion, which it cannot go on from"));
}

TEST_CASE("a scheduler and a plateau set the rate of an optimiser of one's own") {
  Tensor w = parameter({0});
  Scripted minus({w}, [](Tensor&, const Tensor&, std::span<Tensor>, std::int64_t) {});
  optim::Scheduler scheduler(minus, [](double base, std::int64_t step) { return base / (1.0 + step); });
  optim::Plateau plateau(minus, {.factor = 0.5, .patience = 0});
  scheduler.step();
  CHECK(minus.learning_rate() == Approx(0.05));
  plateau.step(1);
  plateau.step(1);
  CHECK(minus.learning_rate() == Approx(0.025));
  OwnLion lion({w}, {.learning_rate = 1});
  lion.set_learning_rate(0.25);
  w.set_grad(tensor({3.0}));
  lion.step();
  CHECK(w.item() == -0.25);
  CHECK_FALSE(minus.has_momentum());
}

TEST_CASE("an update that throws changes nothing, whatever it and those before it have overwritten") {
  Tensor a = parameter({1, 2}), b = parameter({3});
  bool fails = false;
  Scripted optimiser({a, b}, [&](Tensor& w, const Tensor& g, std::span<Tensor> state, std::int64_t step) {
    state[0] += g * 2;
    mul_(g, 10);
    w -= state[0] * static_cast<double>(step);
    if (fails && w.numel() == 1) throw std::domain_error("enough");
  });
  auto step = [&] {
    a.set_grad(tensor({1.0, -1.0}));
    b.set_grad(tensor({2.0}));
    optimiser.step();
  };
  step();
  CHECK(numbers(a) == std::vector<double>{-1, 4});
  CHECK(numbers(b) == std::vector<double>{-1});
  std::vector<NamedTensor> before = optimiser.state();
  fails = true;
  CHECK_THROWS_AS(step(), std::domain_error);
  CHECK(numbers(a) == std::vector<double>{-1, 4});
  CHECK(numbers(b) == std::vector<double>{-1});
  CHECK(numbers(a.grad()) == std::vector<double>{1, -1});
  std::vector<NamedTensor> after = optimiser.state();
  REQUIRE(after.size() == before.size());
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(numbers(after[i].tensor) == numbers(before[i].tensor));
  fails = false;
  step();
  CHECK(numbers(a) == std::vector<double>{-1 - 2 * 4, 4 + 2 * 4});
}

TEST_CASE("an update whose results do not fit is refused with what is wrong") {
  Tensor w = parameter({1, 2});
  auto refused = [&](auto function) {
    Scripted optimiser({w},
                       [&](Tensor& w, const Tensor&, std::span<Tensor> state, std::int64_t) { function(w, state); });
    w.set_grad(tensor({1.0, 1.0}));
    std::string text = error_of<Error>([&] { optimiser.step(); });
    CHECK(numbers(w) == std::vector<double>{1, 2});
    CHECK(optimiser.state()[1].tensor.to_vector<std::int64_t>()[0] == 0);
    return text;
  };
  CHECK_THAT(refused([](Tensor& w, std::span<Tensor>) { w = sum(w); }),
             contains("Scripted: update made parameter 0, () f64, of (2,) f64; the shape has to stay; at "));
  CHECK_THAT(refused([](Tensor& w, std::span<Tensor>) { w = to(w, f32); }),
             contains("made parameter 0, (2,) f32, of (2,) f64; convert it with to(x, f64)"));
  CHECK_THAT(refused([](Tensor& w, std::span<Tensor>) { w = {}; }), contains("update left parameter 0 undefined"));
  CHECK_THAT(refused([](Tensor&, std::span<Tensor> state) { state[0] = zeros({3}, {.dtype = f64}); }),
             contains("made 'mean' of parameter 0, (3,) f64, of (2,) f64"));
}

TEST_CASE("an error of an op in an update names the update's own line") {
  Tensor w = parameter({1, 2});
  constexpr int line = __LINE__ + 1;
  auto function = [](Tensor& w, const Tensor&, std::span<Tensor>, std::int64_t) { w += ones({3}, {.dtype = f64}); };
  Scripted optimiser({w}, function);
  w.set_grad(tensor({1.0, 1.0}));
  CHECK_THAT(error_of<ShapeError>([&] { optimiser.step(); }), contains("custom_test.cpp:" + std::to_string(line)));
}

TEST_CASE("an optimiser of one's own refuses gradients by rows, and its options are checked") {
  Tensor table = ones({5, 2}).requires_grad();
  OwnLion lion({table}, {});
  {
    Tape tape;
    tape.backward(sum(embedding(table, tensor({std::int64_t{1}}), {.row_gradient = true})));
  }
  CHECK_THAT(error_of<Error>([&] { lion.step(); }),
             contains("OwnLion: parameter 0, (5, 2) f32, has a gradient by rows, for which only SGD"));
  CHECK_THAT(error_of<Error>([&] { lion.add_group({parameter({1})}, {.learning_rate = -1}); }),
             contains("OwnLion: the learning rate -1 is not 0 or more"));
  CHECK_THAT(error_of<Error>([&] { lion.add_group({parameter({1})}, {.beta1 = 1}); }),
             contains("OwnLion: the momentum 1 lies outside [0, 1)"));
  CHECK_THAT(error_of<Error>([&] { lion.set_options(0, {.learning_rate = NAN}); }), contains("learning rate nan"));
}

TEST_CASE("names of state that could not be saved, or that clash, are refused") {
  Tensor w = parameter({1});
  auto refused = [&](std::initializer_list<const char*> names) {
    return error_of<Error>([&] { Scripted optimiser({w}, {}, names); });
  };
  CHECK_THAT(refused({"mean", "mean"}), contains("Scripted: two tensors of state have the name 'mean'"));
  CHECK_THAT(refused({"a.b"}), contains("the name 'a.b' of a tensor of state is not one of letters, digits and '_'"));
  CHECK_THAT(refused({""}), contains("the name ''"));
  CHECK_THAT(refused({"a", "b", "c", "d", "e", "f", "g", "h", "i"}), contains("9 tensors of state are more than 8"));
  CHECK(refused({"a", "b", "c", "d", "e", "f", "g", "h_2"}).empty());
}

TEST_CASE("state may have a shape, a dtype and an initial value of its own, also when it is loaded") {
  auto train = [](Factored& optimiser, int begin, int end) {
    for (int step = begin; step < end; ++step) {
      const Tensor& w = optimiser.parameters()[0];
      w.set_grad(reshape(sin(arange(1.0f, 7.0f) * step), {2, 3}));
      optimiser.step();
    }
  };
  Tensor whole = reshape(arange(6.0f), {2, 3}).requires_grad();
  Factored one({whole});
  train(one, 1, 3);
  Tensor part = copy(stop_gradient(whole)).requires_grad();
  Factored other({part});
  std::vector<NamedTensor> state = one.state();
  other.load_state(state);
  train(one, 3, 6);
  train(other, 3, 6);
  CHECK(numbers(part) == numbers(whole));
  CHECK(state.back().name == "0.start");
  CHECK(numbers(state.back().tensor) == std::vector<double>{0, 1, 2, 3, 4, 5});
  state[state.size() - 2].tensor = zeros({2}, {.dtype = f64});
  CHECK_THAT(error_of<ShapeError>([&] { other.load_state(state); }),
             contains("'0.columns', (2,) f64, does not fit: the shape has to be (3,)"));
}

TEST_CASE("an update's products run in full precision within autocast, and nothing records them") {
  Tensor w = full({1, 1}, 1.0f).requires_grad();
  Scripted optimiser({w}, [](Tensor& w, const Tensor& g, std::span<Tensor>, std::int64_t) { w = matmul(w, g); });
  w.set_grad(full({1, 1}, 1.0f + 1.0f / 4096));
  Tape tape;
  auto scope = autocast(bf16);
  optimiser.step();
  CHECK(w.item() == 1 + 1.0 / 4096);
  CHECK(w.is_parameter());
}
