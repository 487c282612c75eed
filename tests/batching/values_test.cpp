#include <reel/batching.h>
#include <reel/reel.h>

#include <memory>
#include <ranges>
#include <vector>

#include "catch.h"
#include "checks.h"

// Control flow that depends on the values it computes; results of any type.

using namespace reel;
using namespace reel_test;

namespace {

struct Cells {
  Tensor W = (draw({5, 5}) * 0.6).requires_grad(), V = (draw({5, 5}) * 0.6).requires_grad(),
         bias = draw({5}).requires_grad();

  std::vector<Tensor> parameters() const { return {W, V, bias}; }
};

std::vector<Tensor> rows(std::size_t count) {
  std::vector<Tensor> made(count);
  for (Tensor& one : made) one = draw({1, 5});
  return made;
}

struct Outcome {
  Tensor state;
  int steps = 0, extra = 0;
};

}  // namespace

TEST_CASE("values that an example reads decide how long its loop runs and which cell comes next") {
  manual_seed(3);
  Cells cells;
  std::vector<Tensor> inputs = rows(17);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = inputs[i] * (1.0 + static_cast<double>(i));
  auto compute = [&](const Tensor& x) {
    Outcome made{x};
    while (made.steps < 40 && sum(square(made.state)).item() > 0.4) {
      made.state = 0.8 * tanh(addmm(0.1 * cells.bias, made.state, cells.W));
      ++made.steps;
      if (argmax(made.state).item<std::int64_t>() < 2) {
        made.state = 0.9 * sin(matmul(made.state, cells.V));
        ++made.extra;
      }
    }
    return made;
  };
  auto run = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Outcome> outcomes = batch_map(inputs, compute, options);
    std::vector<Tensor> states;
    std::vector<std::int64_t> counts;
    for (const Outcome& one : outcomes) {
      states.push_back(one.state);
      counts.insert(counts.end(), {one.steps, one.extra});
    }
    Tensor all = concat(states, 0);
    std::vector<Tensor> results = tape.gradient(sum(square(all)), cells.parameters());
    results.insert(results.end(), {all, tensor(counts)});
    return results;
  };
  check_as_immediate(run);
  // The examples do differ in what they run.
  std::vector<std::int64_t> counts = run({.immediate = true}).back().to_vector<std::int64_t>();
  int different = 0, with_extra = 0;
  for (std::size_t i = 2; i < counts.size(); i += 2) {
    different += counts[i] != counts[0];
    with_extra += counts[i + 1] > 0;
  }
  CHECK(different > 3);
  CHECK(with_extra > 3);
  CHECK(with_extra < 17);
}

TEST_CASE("sequences of different lengths, also of none, end in the states of single sequences") {
  manual_seed(4);
  Cells cells;
  std::vector<std::vector<Tensor>> sequences;
  for (std::size_t length : {3u, 0u, 9u, 1u, 4u, 0u, 4u, 12u}) sequences.push_back(rows(length));
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> states = batch_map(
        sequences,
        [&](const std::vector<Tensor>& sequence) {
          Tensor h = zeros({1, 5}, {.dtype = f64});
          for (const Tensor& x : sequence) h = tanh(addmm(cells.bias, x, cells.W) + matmul(h, cells.V));
          return h;
        },
        options);
    std::vector<Tensor> results = tape.gradient(sum(square(concat(states, 0))), cells.parameters());
    results.insert(results.end(), states.begin(), states.end());
    return results;
  });
}

TEST_CASE("a batch of no examples is empty, and calls nothing") {
  int calls = 0;
  std::vector<Tensor> none;
  std::vector<Tensor> made = batch_map(none, [&](const Tensor& x) {
    ++calls;
    return x;
  });
  CHECK(made.empty());
  batch_map(none, [&](const Tensor&) { ++calls; });
  CHECK(calls == 0);
}

TEST_CASE("a single example runs on the caller's stack") {
  manual_seed(5);
  Cells cells;
  std::vector<Tensor> inputs = rows(1);
  BatchReport report;
  char* address = nullptr;
  Tape tape;
  std::vector<Tensor> made = batch_map(inputs,
                                       [&](const Tensor& x) {
                                         char local = 0;
                                         address = &local;
                                         return tanh(matmul(x, cells.W));
                                       },
                                       {.report = &report});
  char here = 0;
  CHECK(std::abs(address - &here) < 64 << 10);
  REQUIRE(!report.lines.empty());
  CHECK(report.lines[0].groups == 0);
  REQUIRE(made.size() == 1);
  Tensor expected = tanh(matmul(inputs[0], cells.W));
  check_close(made, {expected});
  CHECK(tape.gradient(sum(made[0]), cells.W).shape() == Shape{5, 5});
}

TEST_CASE("results are in the order of the examples, whichever ends first, and may be movable only") {
  manual_seed(6);
  Cells cells;
  auto made = batch_map(std::views::iota(0, 9), [&](int i) {
    Tensor h = full({1, 5}, 0.1 * i, {.dtype = f64});
    for (int step = 0; step < 9 - i; ++step) h = matmul(h, cells.W);
    (void)h.to_vector<double>();
    return std::make_unique<int>(i);
  });
  REQUIRE(made.size() == 9);
  for (int i = 0; i < 9; ++i) CHECK(*made[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a function without a result may change its examples and what it captures") {
  manual_seed(7);
  Cells cells;
  struct Example {
    Tensor x, y;
  };
  std::vector<Tensor> inputs = rows(6);
  auto run = [&](const BatchOptions& options) {
    std::vector<Example> examples;
    for (const Tensor& x : inputs) examples.push_back({x, {}});
    double total = 0;
    batch_map(
        examples,
        [&](Example& example) {
          example.y = relu(matmul(example.x, cells.W));
          total += sum(example.y).item();
        },
        options);
    std::vector<Tensor> results{full({}, total, {.dtype = f64})};
    for (const Example& example : examples) results.push_back(example.y);
    return results;
  };
  check_as_immediate(run);
}

TEST_CASE("without a tape, and with one that was opened for the values only, results are those of plain loops") {
  manual_seed(8);
  Cells cells;
  std::vector<Tensor> inputs = rows(7);
  auto f = [&](const Tensor& x) {
    Tensor h = softmax(addmm(cells.bias, x, cells.W), 1);
    if (h(0, 0).item() > 0.2) h = h + matmul(h, cells.V);
    return concat({h, mean(h, {1}, {.keepdims = true})}, 1);
  };
  std::vector<Tensor> expected;
  for (const Tensor& x : inputs) expected.push_back(f(x));
  check_close(batch_map(inputs, f), expected);
  CHECK_FALSE(is_recording());
  Tape tape;
  check_close(batch_map(inputs, f), expected);
  NoRecord paused;
  std::size_t entries = tape.size();
  check_close(batch_map(inputs, f), expected);
  CHECK(tape.size() == entries);
}
