#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/optim.h>

#include <reel/tape.h>

#include <cmath>
#include <optional>
#include <stdexcept>

#include "catch.h"

using namespace reel;
using namespace reel_test;

namespace {

constexpr double pi = 3.14159265358979323846;

std::vector<Tensor> weights() { return {ones({2}).requires_grad()}; }

std::vector<double> rates(const optim::Schedule& schedule, double base, int count) {
  std::vector<double> found;
  for (int t = 0; t < count; ++t) found.push_back(schedule.rate(base, t));
  return found;
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("step, multi-step and exponential schedules multiply by a factor at their steps") {
  check_close(rates(optim::step_decay({.every = 2, .factor = 0.5}), 8, 6), {8, 8, 4, 4, 2, 2});
  check_close(rates(optim::multi_step({.at = {1, 3, 3}, .factor = 0.5}), 8, 5), {8, 4, 4, 1, 1});
  check_close(rates(optim::exponential({.factor = 0.5}), 8, 4), {8, 4, 2, 1});
}

TEST_CASE("a cosine falls along half a wave, as PyTorch's recursion does") {
  optim::Schedule schedule = optim::cosine({.steps = 10, .least = 0.1});
  double recursive = 2;
  for (int t = 0; t <= 10; ++t) {
    CHECK(schedule.rate(2, t) == Approx(recursive).epsilon(1e-12));
    recursive = (1 + std::cos(pi * (t + 1) / 10)) / (1 + std::cos(pi * t / 10)) * (recursive - 0.1) + 0.1;
  }
  CHECK(schedule.rate(2, 10) == Approx(0.1));
  CHECK(schedule.rate(2, 5) == Approx(1.05));
}

TEST_CASE("a cosine with restarts begins anew after each period, which may grow") {
  auto wave = [](double share) { return (1 + std::cos(pi * share)) / 2; };
  check_close(rates(optim::cosine_with_restarts({.first_period = 2}), 1, 5), {1, wave(0.5), 1, wave(0.5), 1});
  check_close(rates(optim::cosine_with_restarts({.first_period = 1, .period_factor = 2}), 1, 8),
              {1, 1, wave(0.5), 1, wave(0.25), wave(0.5), wave(0.75), 1});
  CHECK(optim::cosine_with_restarts({.first_period = 3}).rate(1, 3'000'000'001) == Approx(wave(1.0 / 3)));
}

TEST_CASE("a warm-up rises in a straight line and stays") {
  check_close(rates(optim::warm_up({.steps = 4, .start = 0.2}), 10, 7), {2, 4, 6, 8, 10, 10, 10});
  check_close(rates(optim::warm_up({.steps = 2, .start = 1, .end = 0}), 10, 4), {10, 5, 0, 0});
}

TEST_CASE("one cycle rises to the highest rate and falls far below the first, the momentum the other way") {
  optim::Schedule schedule =
      optim::one_cycle({.steps = 10, .highest = 1, .rising = 0.5, .start_divisor = 10, .end_divisor = 100});
  // The highest is reached at 0.5 · 10 − 1 = 4, the end at 9.
  CHECK(schedule.rate(7, 0) == Approx(0.1));
  CHECK(schedule.rate(7, 2) == Approx(0.55));
  CHECK(schedule.rate(7, 4) == Approx(1));
  CHECK(schedule.rate(7, 9) == Approx(0.001));
  CHECK(schedule.rate(7, 50) == Approx(0.001));
  CHECK(schedule.rate(7, 5) == Approx(0.001 + 0.999 / 2 * (1 + std::cos(pi / 5))));
  CHECK(schedule.momentum(0) == Approx(0.95));
  CHECK(schedule.momentum(4) == Approx(0.85));
  CHECK(schedule.momentum(9) == Approx(0.95));
  optim::Schedule own = optim::one_cycle({.steps = 10, .rising = 0.5, .linear = true, .cycles_momentum = false});
  CHECK(own.rate(7, 4) == Approx(7));
  CHECK(own.rate(7, 2) == Approx(7.0 / 25 + (7 - 7.0 / 25) / 2));
  CHECK_FALSE(own.momentum);
}

TEST_CASE("one cycle of three phases comes back to its first rate on the way") {
  optim::Schedule schedule = optim::one_cycle(
      {.steps = 20, .highest = 1, .rising = 0.25, .start_divisor = 10, .end_divisor = 10, .three_phases = true});
  // Turns at 4, 8 and 19.
  CHECK(schedule.rate(1, 0) == Approx(0.1));
  CHECK(schedule.rate(1, 4) == Approx(1));
  CHECK(schedule.rate(1, 8) == Approx(0.1));
  CHECK(schedule.rate(1, 19) == Approx(0.01));
  CHECK(schedule.momentum(8) == Approx(0.95));
  CHECK(schedule.momentum(19) == Approx(0.95));
}

TEST_CASE("a cyclic schedule goes up and down in straight lines, as high as its mode says") {
  using optim::CycleMode;
  check_close(rates(optim::cyclic({.highest = 3, .lowest = 1, .up = 2, .down = 4}), 9, 8),
              {1, 2, 3, 2.5, 2, 1.5, 1, 2});
  check_close(rates(optim::cyclic({.highest = 3, .up = 1, .mode = CycleMode::triangular2}), 1, 6),
              {1, 3, 1, 2, 1, 1.5});
  check_close(rates(optim::cyclic({.highest = 3, .up = 1, .mode = CycleMode::exponential, .factor = 0.5}), 1, 4),
              {1, 2, 1, 1.25});
  optim::Schedule schedule = optim::cyclic({.highest = 3, .up = 2});
  CHECK(schedule.momentum(0) == Approx(0.9));
  CHECK(schedule.momentum(2) == Approx(0.8));
}

TEST_CASE("schedules follow one another, each from its own start, and chain by their factors") {
  check_close(rates(optim::sequence({{optim::warm_up({.steps = 2, .start = 0}), 2},
                                     {optim::exponential({.factor = 0.5}), 2},
                                     {optim::step_decay({.every = 1, .factor = 0.1})}}),
                    1, 7),
              {0, 0.5, 1, 0.5, 1, 0.1, 0.01});
  check_close(
      rates(optim::chain({optim::warm_up({.steps = 2, .start = 0.5}), optim::exponential({.factor = 0.5})}), 8, 4),
      {4, 3, 2, 1});
}

TEST_CASE("a scheduler sets each group's rate from its own, and the momentum") {
  Tensor a = ones({1}).requires_grad(), b = ones({1}).requires_grad(), c = ones({1}).requires_grad();
  optim::SGD sgd({a}, {.learning_rate = 1});
  sgd.add_group({b}, {.learning_rate = 0.1});
  optim::Scheduler scheduler(sgd, optim::exponential({.factor = 0.5}));
  CHECK(sgd.learning_rate(0) == 1);
  scheduler.step();
  CHECK(sgd.learning_rate(0) == 0.5);
  CHECK(sgd.learning_rate(1) == 0.05);
  sgd.add_group({c}, {.learning_rate = 4});
  scheduler.step();
  CHECK(scheduler.steps() == 2);
  CHECK(sgd.learning_rate(1) == 0.025);
  CHECK(sgd.learning_rate(2) == 1);

  optim::Adam adam({a});
  adam.add_group({b});
  optim::Scheduler each(adam, {optim::one_cycle({.steps = 4, .highest = 1}), [](double base, std::int64_t step) {
                                 return base / std::sqrt(1.0 + static_cast<double>(step));
                               }});
  CHECK(adam.learning_rate(0) == Approx(0.04));
  CHECK(adam.momentum(0) == Approx(0.95));
  CHECK(adam.momentum(1) == 0.9);
  each.step();
  CHECK(adam.learning_rate(1) == Approx(1e-3 / std::sqrt(2)));
}

TEST_CASE("a scheduler goes on from its state, whatever the rates are by then") {
  auto make = [] { return optim::sequence({{optim::warm_up({.steps = 3}), 3}, {optim::cosine({.steps = 5})}}); };
  optim::SGD one(weights(), {.learning_rate = 2}), other(weights(), {.learning_rate = 2});
  optim::Scheduler first(one, make());
  for (int i = 0; i < 4; ++i) first.step();
  other.load_state(one.state());
  optim::Scheduler second(other, make());
  second.load_state(first.state());
  for (int i = 0; i < 3; ++i) {
    CHECK(other.learning_rate() == one.learning_rate());
    first.step();
    second.step();
  }
  CHECK_THAT(error_of<Error>([&] { second.load_state(std::vector<NamedTensor>{}); }),
             contains("Scheduler: the state lacks 'step'"));
}

TEST_CASE("a plateau reduces the rate when the metric has not improved for longer than patience") {
  optim::SGD sgd(weights(), {.learning_rate = 1});
  optim::Plateau plateau(sgd, {.factor = 0.5, .patience = 1, .threshold = 0.1, .cooldown = 1, .least = 0.2});
  std::vector<double> found;
  // 0.95 is no better than 1 by a tenth of it.
  for (double metric : std::vector<double>{1.0, 0.95, 0.95, 0.95, 0.95, 0.95, 0.8, NAN, NAN, 0.8, 0.8, 0.8, 0.8}) {
    plateau.step(metric);
    found.push_back(sgd.learning_rate());
  }
  CHECK(found == std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2});
  CHECK(plateau.best() == 0.8);
}

TEST_CASE("a plateau of a metric that is to grow, by absolute steps, goes on from its state") {
  optim::SGD sgd(weights(), {.learning_rate = 1});
  optim::PlateauOptions options{
      .factor = 0.5, .patience = 0, .threshold = 0.5, .relative = false, .larger_is_better = true};
  optim::Plateau plateau(sgd, options);
  CHECK_FALSE(plateau.step(1));
  CHECK_FALSE(plateau.step(1.6));
  CHECK(plateau.step(2));
  optim::Plateau other(sgd, options);
  other.load_state(plateau.state());
  CHECK(other.step(2));
  CHECK(sgd.learning_rate() == 0.25);
}

TEST_CASE("a scheduler goes on from what a plateau has reduced, until a rate is set by hand") {
  optim::SGD sgd(weights(), {.learning_rate = 8});
  optim::Scheduler scheduler(sgd, optim::exponential({.factor = 0.5}));
  optim::Plateau plateau(sgd, {.factor = 0.25, .patience = 0});
  plateau.step(1);
  CHECK(plateau.step(1));
  CHECK(sgd.learning_rate() == 2);
  scheduler.step();
  CHECK(sgd.learning_rate() == 1);
  CHECK(plateau.step(1));
  scheduler.step();
  CHECK(sgd.learning_rate() == 8 * 0.25 / 16);
  sgd.set_learning_rate(3);
  scheduler.step();
  CHECK(sgd.learning_rate() == 1);
  optim::Scheduler later(sgd, optim::exponential({.factor = 0.5}));
  CHECK(sgd.learning_rate() == 1);
}

namespace {

// A run with a scheduler and a plateau on one optimiser of two groups; its metric improves only sometimes.
struct Run {
  Tensor a = tensor({1.0, 2.0}).requires_grad(), b = tensor({3.0}).requires_grad();
  optim::Adam adam{{a}, {.learning_rate = 0.3}};
  std::optional<optim::Scheduler> scheduler;
  std::optional<optim::Plateau> plateau;

  Run() {
    adam.add_group({b}, {.learning_rate = 0.07});
    scheduler.emplace(adam, optim::chain({optim::warm_up({.steps = 3, .start = 0}), optim::cosine({.steps = 40})}));
    plateau.emplace(adam, optim::PlateauOptions{.factor = 0.3, .patience = 1, .cooldown = 1, .least = 1e-3});
  }

  void step(int t) {
    adam.zero_grad();
    Tape tape;
    tape.backward(sum(square(a * b)) + sum(b));
    adam.step();
    if (t % 3 == 1) plateau->step(t == 7 ? 0.5 : 1.0);
    scheduler->step();
    if (t % 3 == 2) plateau->step(1.0);
  }
  std::vector<double> values() const {
    std::vector<double> all = a.to_vector<double>();
    all.insert(all.end(), {b.item(), adam.learning_rate(0), adam.learning_rate(1)});
    return all;
  }
};

}  // namespace

TEST_CASE("states of an optimiser, a scheduler and a plateau resume to the bit in whatever order they are loaded") {
  constexpr int steps = 24;
  const std::vector<int> orders[] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  Run whole;
  std::vector<std::vector<double>> expected;
  for (int t = 0; t < steps; ++t) {
    whole.step(t);
    expected.push_back(whole.values());
  }
  CHECK(expected.back().back() < 0.01 * 0.07);  // reduced several times
  for (int stop = 1; stop < steps; ++stop)
    for (const std::vector<int>& order : orders) {
      Run before, after;
      for (int t = 0; t < stop; ++t) before.step(t);
      {
        NoRecord pause;
        copy_(after.a, before.a);
        copy_(after.b, before.b);
      }
      for (int which : order) {
        if (which == 0) after.adam.load_state(before.adam.state());
        if (which == 1) after.scheduler->load_state(before.scheduler->state());
        if (which == 2) after.plateau->load_state(before.plateau->state());
      }
      CAPTURE(stop, order);
      CHECK(after.values() == expected[static_cast<std::size_t>(stop - 1)]);
      for (int t = stop; t < steps; ++t) {
        after.step(t);
        CHECK(after.values() == expected[static_cast<std::size_t>(t)]);
      }
    }
}

TEST_CASE("a plateau refuses a state that is none of its own, and changes nothing") {
  optim::SGD sgd(weights(), {.learning_rate = 1});
  optim::Plateau plateau(sgd);
  plateau.step(5);
  auto text = [&](std::size_t i, const Tensor& value) {
    std::vector<NamedTensor> state = plateau.state();
    state[i].tensor = value;
    return error_of<Error>([&] { plateau.load_state(state); });
  };
  CHECK_THAT(text(0, tensor({std::nan("")})), contains("Plateau: the state's 'best' is NaN"));
  CHECK_THAT(text(1, tensor<std::int64_t>({-1})), contains("'bad_steps' -1 and 'cooldown' 0 are not both 0 or more"));
  CHECK_THAT(text(2, tensor<std::int64_t>({-2})), contains("'bad_steps' 0 and 'cooldown' -2 are not both 0 or more"));
  CHECK(plateau.best() == 5);
}

TEST_CASE("schedules refuse what they cannot do in one sentence") {
  auto text = [](auto make) { return error_of<Error>(make); };
  CHECK_THAT(text([] { optim::step_decay({.every = 0}); }), contains("step_decay: the number of steps 0 is not 1"));
  CHECK_THAT(text([] { optim::multi_step({.at = {3, 1}}); }), contains("multi_step: the steps are not in rising"));
  CHECK_THAT(text([] { optim::exponential({.factor = -1}); }), contains("exponential: the factor -1"));
  CHECK_THAT(text([] { optim::cosine({.steps = 0}); }), contains("cosine: the number of steps 0"));
  CHECK_THAT(text([] { optim::cosine_with_restarts({.period_factor = 0}); }), contains("the factor of periods 0"));
  CHECK_THAT(text([] { optim::warm_up({.start = -1}); }), contains("warm_up: the start -1"));
  CHECK_THAT(text([] { optim::one_cycle({.steps = 1}); }), contains("one_cycle: the number of steps 1"));
  CHECK_THAT(text([] { optim::one_cycle({.steps = 9, .rising = 0.6, .three_phases = true}); }), contains("(0, 0.5]"));
  CHECK_THAT(text([] { optim::one_cycle({.steps = 9, .end_divisor = 0}); }), contains("divisors 25 and 0"));
  CHECK_THAT(text([] { optim::cyclic({.highest = 0}); }), contains("cyclic: the highest learning rate 0 is not above"));
  CHECK_THAT(text([] { optim::sequence({}); }), contains("sequence: at least one schedule"));
  CHECK_THAT(text([] { optim::chain({optim::Schedule()}); }), contains("chain: a schedule without a function"));
  CHECK_THAT(text([] {
               optim::chain({optim::cyclic({.highest = 1}), optim::cyclic({.highest = 1})});
             }),
             contains("more than one schedule sets the momentum"));
  CHECK_THAT(text([] {
               optim::sequence({{optim::cosine({}), 3}, {optim::cyclic({.highest = 1})}});
             }),
             contains("either all schedules set the momentum or none; part 1 differs"));
  optim::Adagrad adagrad(weights());
  CHECK_THAT(text([&] { optim::Scheduler s(adagrad, optim::cyclic({.highest = 1})); }), contains("has none"));
  CHECK_THAT(text([&] { optim::Scheduler s(adagrad, optim::Schedule()); }), contains("no function for the rate"));
  CHECK_THAT(text([&] {
               optim::Scheduler s(adagrad, {optim::cosine({}), optim::cosine({})});
             }),
             contains("one for each of the 1 groups, not 2"));
  CHECK_THAT(text([&] { optim::Scheduler s(adagrad, [](double, std::int64_t) { return -1.0; }); }),
             contains("the learning rate -1"));
  CHECK_THAT(text([&] { optim::Plateau p(adagrad, {.factor = 1}); }), contains("Plateau: the factor 1 lies outside"));
  CHECK_THAT(text([&] { optim::Plateau p(adagrad, {.patience = -1}); }), contains("the patience -1"));
}

TEST_CASE("a scheduler that throws changes nothing") {
  Tensor a = ones({1}).requires_grad(), b = ones({1}).requires_grad();
  optim::SGD sgd({a}, {.learning_rate = 1});
  sgd.add_group({b}, {.learning_rate = 2});
  bool throws = false;
  optim::Schedule falling([](double base, std::int64_t step) { return base / static_cast<double>(step + 1); });
  optim::Schedule odd([&](double base, std::int64_t step) {
    if (throws) throw std::runtime_error("no rate");
    return step == 2 ? -1 : base;
  });
  optim::Scheduler scheduler(sgd, std::vector<optim::Schedule>{falling, odd});
  auto state_is = [&](std::int64_t step, double rate) {
    return scheduler.steps() == step && sgd.learning_rate(0) == rate && sgd.learning_rate(1) == 2;
  };
  CHECK(state_is(0, 1));
  throws = true;
  CHECK_THROWS_AS(scheduler.step(), std::runtime_error);
  CHECK(state_is(0, 1));
  throws = false;
  scheduler.step();
  CHECK(state_is(1, 0.5));
  CHECK_THAT(error_of<Error>([&] { scheduler.step(); }), contains("the learning rate -1"));
  CHECK(state_is(1, 0.5));
  std::vector<NamedTensor> state = scheduler.state();
  state[0].tensor = tensor<std::int64_t>({2});
  state[1].tensor = tensor({7.0, 8.0});
  CHECK_THAT(error_of<Error>([&] { scheduler.load_state(state); }), contains("the learning rate -1"));
  CHECK(state_is(1, 0.5));
  CHECK(scheduler.state()[1].tensor.to_vector<double>() == std::vector<double>{1, 2});
}
