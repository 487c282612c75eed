#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <tuple>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

#include "examples/nn_unroll_1.h"

const std::vector<std::int64_t> some_lengths{3, 0, 1, 4, 2};

nn::Packed ragged(std::int64_t width) { return {draw({10, width}), some_lengths}; }

// The outputs and last states of a cell, for one sequence after the other and one element after the other.
template <class Cell, class State>
std::pair<Tensor, std::vector<State>> one_by_one(const Cell& cell, const nn::Packed& x, bool reverse,
                                                 const std::vector<State>& first) {
  std::vector<Tensor> outputs;
  std::vector<State> last;
  std::vector<Tensor> sequences = x.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    State state = first[s];
    std::int64_t length = sequences[s].size(0);
    std::vector<Tensor> own(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; ++i) {
      std::int64_t t = reverse ? length - 1 - i : i;
      nn::CellStep<State> step = nn::step_of<State>(cell, slice(sequences[s], 0, t, t + 1), state);
      own[static_cast<std::size_t>(t)] = step.output;
      state = step.state;
    }
    outputs.insert(outputs.end(), own.begin(), own.end());
    last.push_back(state);
  }
  return {concat(outputs), last};
}

// A cell without parameters whose state has an integer tensor beside a floating one: the number of steps.
struct Counted {
  Tensor sum, steps;
};
std::vector<Tensor*> tensors_of(Counted& state) { return {&state.sum, &state.steps}; }
struct Counter {
  nn::CellStep<Counted> operator()(const Arg& x, const Counted& state) const {
    return {state.sum * 2, {state.sum + *x.tensor(), state.steps + 1}};
  }
};

// One whose first step makes the state.
struct Beginner {
  nn::CellStep<Counted> operator()(const Arg& x, const Counted& state) const {
    const Tensor& now = *x.tensor();
    if (state.sum.defined()) return {now, {state.sum + now, state.steps + 1}};
    return {now, {now * 1, ones({now.size(0), 1}, {.dtype = i64})}};
  }
};

}  // namespace

TEST_CASE("a state may be undefined until the cell's first step") {
  nn::Packed x{draw({10, 2}), {3, 1, 4, 2}};
  Counted state = nn::unroll(Beginner(), x, Counted{}).state;
  std::vector<Tensor> sequences = x.sequences();
  for (std::int64_t s = 0; s < 4; ++s) {
    check_close(state.sum(s), sum(sequences[static_cast<std::size_t>(s)], 0));
    CHECK(state.steps(s).item() == sequences[static_cast<std::size_t>(s)].size(0));
  }
}

TEST_CASE("unroll computes what a cell gives for one sequence after the other, in both directions") {
  nn::LSTMCell cell(2, 3, {.dtype = f64});
  nn::Packed x = ragged(2);
  LSTMState first{draw({5, 3}), draw({5, 3})};
  std::vector<LSTMState> each;
  for (std::int64_t s = 0; s < 5; ++s) each.push_back({slice(first.h, 0, s, s + 1), slice(first.c, 0, s, s + 1)});
  for (bool reverse : {false, true}) {
    INFO("reverse: " << reverse);
    auto [output, state] = nn::unroll(cell, x, first, {.reverse = reverse});
    auto [expected, last] = one_by_one(cell, x, reverse, each);
    check_close(output.elements, expected);
    CHECK(output.lengths == some_lengths);
    for (std::int64_t s = 0; s < 5; ++s) {
      check_close(slice(state.h, 0, s, s + 1), last[static_cast<std::size_t>(s)].h);
      check_close(slice(state.c, 0, s, s + 1), last[static_cast<std::size_t>(s)].c);
    }
  }
}

TEST_CASE("unroll computes what the recurrent layers do with the weights of their cells") {
  nn::LSTM lstm(2, 3, {.dtype = f64});
  nn::GRU gru(2, 3, {.dtype = f64});
  nn::RNN rnn(2, 3, {.dtype = f64});
  nn::Packed x = ragged(2);
  auto by_lstm = nn::unroll(lstm.nets[0], x);
  nn::PackedLSTMOutput expected = lstm(x);
  check_close(by_lstm.output.elements, expected.output.elements);
  check_close(by_lstm.state.c, select(expected.c_n, 0, 0));
  check_close(nn::unroll(gru.nets[0], x).output.elements, gru(x).output.elements);
  auto by_rnn = nn::unroll(rnn.nets[0], x);
  check_close(by_rnn.output.elements, rnn(x).output.elements);
  check_close(by_rnn.state, select(rnn(x).h_n, 0, 0));
}

TEST_CASE("unroll over padded steps computes what a loop over them does") {
  nn::GRUCell cell(2, 3, {.dtype = f64});
  Tensor x = draw({4, 5, 2}), h = draw({5, 3});
  for (bool reverse : {false, true}) {
    Tensor state = h;
    std::vector<Tensor> outputs(4);
    for (std::int64_t i = 0; i < 4; ++i) {
      std::int64_t t = reverse ? 3 - i : i;
      state = cell(select(x, 0, t), state);
      outputs[static_cast<std::size_t>(t)] = state;
    }
    auto steps = nn::unroll(cell, x, h, {.reverse = reverse});
    check_close(steps.output, stack(outputs));
    check_close(steps.state, state);
  }
  check_close(nn::unroll(cell, x).state, nn::unroll(cell, x, zeros({5, 3}, {.dtype = f64})).state);
}

TEST_CASE("unroll takes a cell of one's own, with a state of several tensors and an output beside it") {
  nn::Packed x = ragged(2);
  Counted first{zeros({5, 2}, {.dtype = f64}), zeros({5}, {.dtype = i64})};
  auto [output, state] = nn::unroll(Counter(), x, first);
  CHECK(state.steps.to_vector<std::int64_t>() == some_lengths);
  std::vector<Tensor> sequences = x.sequences(), outputs = output.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    check_close(select(state.sum, 0, static_cast<std::int64_t>(s)), sum(sequences[s], {0}));
    if (some_lengths[s] > 0) check_close(outputs[s], 2 * (cumsum(sequences[s], 0) - sequences[s]));
  }
  Leaky leaky;
  auto result = nn::unroll(leaky, nn::Packed{randn({10, 8}), some_lengths});
  CHECK(result.output.elements.shape() == Shape{10, 16});
  CHECK(result.state.shape() == Shape{5, 16});
}

TEST_CASE("the gradients of unroll agree with differences") {
  nn::LSTMCell cell(2, 2, {.dtype = f64});
  check_gradients(
      [&](std::span<const Tensor> in) {
        auto [output, state] = nn::unroll(cell, nn::Packed{in[0], {2, 0, 3}}, LSTMState{in[1], in[2]});
        return concat({flatten(sin(output.elements)), flatten(cos(state.h)), flatten(state.c)});
      },
      {draw({5, 2}), draw({3, 2}), draw({3, 2})});
}

TEST_CASE("sequences without elements give outputs of the cell's width and the first state") {
  nn::LSTMCell cell(2, 3, {.dtype = f64});
  LSTMState first{draw({2, 3}), draw({2, 3})};
  auto none = nn::unroll(cell, nn::Packed{zeros({0, 2}, {.dtype = f64}), {0, 0}}, first);
  CHECK(none.output.elements.shape() == Shape{0, 3});
  check_close(none.state.h, first.h);
  auto steps = nn::unroll(cell, zeros({0, 2, 2}, {.dtype = f64}), first);
  CHECK(steps.output.shape() == Shape{0, 2, 3});
  check_close(steps.state.c, first.c);
}

TEST_CASE("two cells in both directions give merged outputs") {
  nn::GRUCell ahead(2, 3, {.dtype = f64}), back(2, 3, {.dtype = f64});
  nn::Packed x = ragged(2);
  Tensor forward = nn::unroll(ahead, x).output.elements,
         reverse = nn::unroll(back, x, {.reverse = true}).output.elements;
  auto joined = nn::unroll_bidirectional(ahead, back, x);
  check_close(joined.output.elements, concat({forward, reverse}, 1));
  check_close(joined.reverse_state, nn::unroll(back, x, {.reverse = true}).state);
  using enum nn::MergeDirections;
  check_close(nn::unroll_bidirectional(ahead, back, x, {.merge = sum}).output.elements, forward + reverse);
  check_close(nn::unroll_bidirectional(ahead, back, x, {.merge = mean}).output.elements, (forward + reverse) / 2.);
}

TEST_CASE("recurrent layers merge the outputs of two directions by sum or mean, in each layer") {
  nn::Packed x = ragged(2);
  auto check = [&](const auto& layer, double factor) {
    REQUIRE(layer.nets.size() == 4);
    CHECK(layer.nets[2].input_size() == 3);
    auto both = [&](std::size_t first, const nn::Packed& in) {
      auto ahead = nn::unroll(layer.nets[first], in), back = nn::unroll(layer.nets[first + 1], in, {.reverse = true});
      return in.with(factor * (ahead.output.elements + back.output.elements));
    };
    check_close(layer(x).output.elements, both(2, both(0, x)).elements);
    Tensor padded = x.padded();
    Tensor lengths = tensor(some_lengths);
    check_close(nn::pack(layer(padded, {}, lengths).output, lengths).elements, layer(x).output.elements);
    CHECK(layer(zeros({0, 2, 2}, {.dtype = f64})).output.shape() == Shape{0, 2, 3});
  };
  using enum nn::MergeDirections;
  check(nn::LSTM(2, 3, {.layers = 2, .bidirectional = true, .merge = sum, .dtype = f64}), 1);
  check(nn::GRU(2, 3, {.layers = 2, .bidirectional = true, .merge = mean, .dtype = f64}), 0.5);
  check(nn::RNN(2, 3, {.layers = 2, .bidirectional = true, .merge = mean, .dtype = f64}), 0.5);
  nn::LSTM one(2, 3, {.merge = sum, .dtype = f64});
  CHECK(one(x).output.elements.shape() == Shape{10, 3});
}

TEST_CASE("wrappers add a residual, a read-out and dropout to a cell, and stack cells") {
  nn::Packed x = ragged(3);
  SECTION("residual") {
    nn::ResidualCell cell(nn::GRUCell(3, 3, {.dtype = f64}));
    check_close(nn::unroll(cell, x).output.elements, x.elements + nn::unroll(cell.cell, x).output.elements);
    check_close(nn::unroll(cell, x).state, nn::unroll(cell.cell, x).state);
    CHECK(cell.named_parameters()[0].name == "cell.W_x");
  }
  SECTION("read-out") {
    nn::ReadOutCell cell(nn::LSTMCell(3, 4, {.dtype = f64}), nn::Linear(4, 2, {.dtype = f64}));
    check_close(nn::unroll(cell, x).output.elements, cell.output(nn::unroll(cell.cell, x).output.elements));
  }
  SECTION("dropout") {
    nn::DropoutCell cell(nn::GRUCell(3, 50, {.dtype = f64}), {.output = 0.5});
    Tensor full = nn::unroll(cell.cell, x).output.elements, dropped = nn::unroll(cell, x).output.elements;
    Tensor kept = dropped != 0;
    double share = mean(to(kept, f64)).item();
    INFO("of 500 elements each stays with probability 1/2: 6 standard deviations are 0.134");
    CHECK(share == Approx(0.5).margin(0.134));
    check_close(dropped, where(kept, 2 * full, full * 0.));
    check_close(nn::unroll(cell, x).state, nn::unroll(cell.cell, x).state);
    cell.eval();
    check_close(nn::unroll(cell, x).output.elements, full);
    nn::DropoutCell input(nn::GRUCell(3, 2, {.dtype = f64}), {.input = 1});
    check_close(nn::unroll(input, x).output.elements,
                nn::unroll(input.cell, x.with(zeros_like(x.elements))).output.elements);
  }
  SECTION("stack") {
    nn::StackedCells<nn::ResidualCell<nn::GRUCell>> cell;
    for (int layer = 0; layer < 3; ++layer) cell.push_back(nn::ResidualCell(nn::GRUCell(3, 3, {.dtype = f64})));
    auto [output, states] = nn::unroll(cell, x);
    nn::Packed layer = x;
    for (std::size_t i = 0; i < 3; ++i) {
      auto own = nn::unroll(cell.cells[i], layer);
      check_close(states[i], own.state);
      layer = own.output;
    }
    check_close(output.elements, layer.elements);
    CHECK(cell.named_parameters()[3].name == "cells.1.cell.W_x");
  }
}

TEST_CASE("the examples of unroll and of wrappers of cells give an output for each element") {
  {
    nn::Packed words{randn({10, 8}), some_lengths};
#include "examples/nn_unroll_2.h"
    CHECK(output.elements.shape() == Shape{10, 16});
    CHECK(state.c.shape() == Shape{5, 16});
  }
  nn::Packed words{randn({10, 64}), some_lengths};
#include "examples/nn_cells_1.h"
  CHECK(output.elements.shape() == Shape{10, 64});
  CHECK(states.size() == 3);
}

TEST_CASE("a state may be a tuple of states") {
  struct Two : nn::Module {
    nn::LSTMCell first{*this, "first", 2, 3, {.dtype = f64}};
    nn::GRUCell second{*this, "second", 3, 4, {.dtype = f64}};
    using State = std::tuple<LSTMState, Tensor>;

    State initial_state(std::int64_t batch) const { return {first.initial_state(batch), second.initial_state(batch)}; }
    nn::CellStep<State> operator()(const Arg& x, const State& state) const {
      LSTMState lower = first(x, std::get<0>(state));
      Tensor upper = second(lower.h, std::get<1>(state));
      return {upper, {lower, upper}};
    }
  };
  Two cell;
  nn::Packed x = ragged(2);
  auto lower = nn::unroll(cell.first, x);
  check_close(nn::unroll(cell, x).output.elements, nn::unroll(cell.second, lower.output).output.elements);
}

TEST_CASE("unroll and the wrappers of cells name what does not fit") {
  nn::GRUCell cell(2, 3, {.dtype = f64});
  nn::Packed x = ragged(2);
  CHECK_THROWS(nn::unroll(cell, x, draw({4, 3})));
  CHECK_THAT(error_of<Error>([&] {
               nn::unroll(cell, x, draw({4, 3}));
             }),
             contains("unroll: the state (4, 3) f64 does not have a row for each of 5 sequences") &&
                 contains("unroll_test.cpp:"));
  auto loses_a_row = [](const Arg& x, const Tensor&) { return slice(*x.tensor(), 0, 0, 1); };
  CHECK_THAT(error_of<Error>([&] {
               nn::unroll(loses_a_row, x, draw({5, 2}));
             }),
             contains("unroll: the cell's output (1, 2) f64 does not have a row for each of 4 sequences"));
  auto nothing = [](const Arg&, const Tensor&) { return Tensor(); };
  CHECK_THAT(error_of<Error>([&] {
               nn::unroll(nothing, x, draw({5, 2}));
             }),
             contains("unroll: the cell returned an undefined output"));
  CHECK_THAT(error_of<Error>([&] {
               nn::unroll(cell, nn::Packed{}, draw({5, 3}));
             }),
             contains("unroll: the elements are an undefined tensor"));
  CHECK_THAT(error_of<Error>([&] {
               nn::unroll(cell, draw({4}), draw({5, 3}));
             }),
             contains("unroll: x (4,) f64 is not (T, B, …)"));
  nn::GRUCell narrow(2, 2, {.dtype = f64});
  CHECK_THAT(error_of<Error>([&] { nn::unroll_bidirectional(cell, narrow, x, {.merge = nn::MergeDirections::sum}); }),
             contains("merge_directions: outputs (10, 3) f64 and (10, 2) f64 have no sum"));
  nn::ResidualCell residual(nn::GRUCell(2, 3, {.dtype = f64}));
  CHECK_THAT(error_of<Error>([&] { nn::unroll(residual, x); }),
             contains("ResidualCell: the cell's output (4, 3) f64 cannot be added to its input (4, 2) f64"));
  CHECK_THAT(error_of<Error>([&] { nn::DropoutCell(nn::GRUCell(2, 3), {.input = 1.5}); }),
             contains("DropoutCell: the probability 1.5 is not in [0, 1]"));
  nn::StackedCells<nn::GRUCell> none;
  CHECK_THAT(error_of<Error>([&] { nn::unroll(none, x); }), contains("StackedCells: it has no cells"));
  none.push_back(nn::GRUCell(2, 3, {.dtype = f64}));
  CHECK_THAT(error_of<Error>([&] { nn::unroll(none, x, std::vector<Tensor>{}); }),
             contains("StackedCells: 0 states were given for 1 cells"));
}
