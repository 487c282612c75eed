#include <reel/batching.h>
#include <reel/reel.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "catch.h"
#include "checks.h"

// Modules and their hooks within examples.

using namespace reel;
using namespace reel_test;

namespace {

struct Tagger : nn::Module {
  nn::Embedding words{*this, "words", 12, 5, {.dtype = f64}};
  nn::LSTMCell cell{*this, "cell", 5, 6, {.dtype = f64}};
  nn::LayerNorm norm{*this, "norm", {6}, {.dtype = f64}};
  nn::Dropout drop{*this, "drop", 0.4};
  nn::Linear out{*this, "out", 6, 3, {.dtype = f64}};

  Tensor loss(const std::vector<std::int64_t>& sentence) const {
    LSTMState state = cell.initial_state(1);
    std::vector<Tensor> losses;
    for (std::int64_t word : sentence) {
      state = cell(words(tensor({word})), state);
      Tensor logits = out(drop(norm(state.h)));
      losses.push_back(cross_entropy(logits, tensor({word % 3})));
      // A word whose tag was wrong is read again.
      if (argmax(logits).item<std::int64_t>() != word % 3) state = cell(words(tensor({word})), state);
    }
    return mean(stack(losses));
  }
};

std::vector<std::vector<std::int64_t>> sentences() {
  return {{1, 5, 2, 9}, {3}, {11, 0, 4, 4, 7, 2, 8}, {6, 6}, {1, 2, 3, 4, 5}, {10}, {9, 8, 7}};
}

std::vector<Tensor> rows(std::size_t count) {
  std::vector<Tensor> made(count);
  for (Tensor& one : made) one = draw({1, 4});
  return made;
}

// Sorted by their first element, as hooks may see the examples in any order.
std::vector<Tensor> sorted(std::vector<Tensor> tensors) {
  std::ranges::sort(tensors, {}, [](const Tensor& x) { return x(0, 0).item(); });
  return tensors;
}

}  // namespace

TEST_CASE("a model of modules has the losses and gradients of single sentences, in training and in evaluation") {
  manual_seed(1);
  Tagger model;
  std::vector<std::vector<std::int64_t>> data = sentences();
  for (bool training : {true, false}) {
    CAPTURE(training);
    model.train(training);
    check_as_immediate([&](const BatchOptions& options) {
      Tape tape;
      Tensor losses = stack(batch_map(
          data, [&](const std::vector<std::int64_t>& one) { return model.loss(one); }, options));
      std::vector<Tensor> results = tape.gradient(sum(losses), model.parameters());
      results.push_back(losses);
      return results;
    });
  }
}

TEST_CASE("two steps of an optimiser give the parameters of single sentences") {
  manual_seed(2);
  std::vector<std::vector<std::int64_t>> data = sentences();
  check_as_immediate(
      [&](const BatchOptions& options) {
        manual_seed(3);
        Tagger model;
        optim::Adam adam(model.parameters(), {.learning_rate = 0.05});
        for (int step = 0; step < 2; ++step) {
          Tape tape;
          Tensor losses = stack(batch_map(
              data, [&](const std::vector<std::int64_t>& one) { return model.loss(one); }, options));
          tape.backward(mean(losses));
          adam.step();
          adam.zero_grad();
        }
        std::vector<Tensor> results;
        for (const Tensor& one : model.parameters()) results.push_back(copy(one));
        return results;
      },
      1e-9);
}

TEST_CASE("recurrent layers, convolutions, attention and batch norms run within examples") {
  manual_seed(4);
  nn::LSTM lstm(4, 3, {.dtype = f64});
  nn::GRUCell gru(3, 5, {.dtype = f64});
  nn::Conv1d convolution(5, 2, 2, {.dtype = f64});
  std::vector<std::int64_t> lengths{3, 5, 3, 2, 5, 3};
  std::vector<Tensor> inputs;
  for (std::int64_t length : lengths) inputs.push_back(draw({length, 1, 4}));
  std::vector<Tensor> parameters;
  for (const nn::Module* module :
       {static_cast<nn::Module*>(&lstm), static_cast<nn::Module*>(&gru), static_cast<nn::Module*>(&convolution)})
    for (const Tensor& one : module->parameters()) parameters.push_back(one);
  check_as_immediate([&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs,
        [&](const Tensor& x) {
          Tensor y = lstm(x).output, h = zeros({1, 5}, {.dtype = f64});
          std::vector<Tensor> states;
          for (std::int64_t t = 0; t < y.size(0); ++t) states.push_back(h = gru(y(t), h));
          Tensor all = permute(stack(states), {1, 2, 0});
          return sum(square(convolution(all)), {2});
        },
        options);
    Tensor all = concat(made, 0);
    std::vector<Tensor> results = tape.gradient(sum(all), parameters);
    results.push_back(all);
    return results;
  });
}

TEST_CASE("dropout, sums of segments and batch norms in evaluation run for all examples, with the bits of each") {
  DType dtype = GENERATE(f32, f64);
  CAPTURE(name_of(dtype));
  manual_seed(21);
  auto drawn = [=](const Shape& shape) { return randn(shape, {.dtype = dtype}); };
  Tensor W = (drawn({6, 6}) * 0.5).requires_grad(), weight = drawn({6}).requires_grad(),
         bias = drawn({6}).requires_grad();
  Tensor mean = drawn({6}), variance = square(drawn({6})) + 0.5;
  std::vector<Tensor> inputs;
  for (std::int64_t count : {4, 7, 2, 5}) inputs.push_back(drawn({count, 6}));
  auto example = [&](const Tensor& x) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < x.size(0); ++i) ids.push_back(i % 3);
    Tensor h = dropout(matmul(x, W), {.probability = 0.3});
    Tensor sums = segment_sum(h, tensor(ids), 3 + x.size(0) % 2);
    return batch_norm(dropout(sums, {.probability = 0.1}), weight, bias, mean, variance);
  };
  std::map<std::string, std::int64_t> groups;
  for (bool records : {true, false}) {
    std::vector<double> expected;
    for (bool immediate : {true, false}) {
      manual_seed(22);
      BatchReport report;
      std::optional<Tape> tape;
      if (records) tape.emplace();
      Tensor all = concat(batch_map(inputs, example, {.immediate = immediate, .report = &report}), 0);
      std::vector<double> found = to(all, f64).to_vector<double>();
      if (immediate) expected = found;
      CHECK(found == expected);
      for (const BatchedLine& line : report.lines) groups[std::string(line.op)] += line.groups;
    }
  }
  CHECK(groups["dropout"] == 4);
  CHECK(groups["segment_sum"] == 2);
  // Copies of the statistics while a tape records: see batch_norm.cpp.
  CHECK(groups["batch_norm_evaluation"] == 1);
  // Gradients are sums of 18 rows in another order.
  check_as_immediate(
      [&](const BatchOptions& options) {
        Tape tape;
        Tensor all = concat(batch_map(inputs, example, options), 0);
        std::vector<Tensor> results = tape.gradient(sum(square(all)), std::vector{W, weight, bias});
        results.push_back(all);
        return results;
      },
      dtype == f32 ? 2e-5 : 1e-12);
}

TEST_CASE("a segment that is out of range is the error of its example, whose neighbours are right") {
  Tensor W = draw({6, 6});
  auto example = [&](int i) {
    Tensor x = matmul(draw({3, 6}), W);
    Tensor ids = tensor({0, i == 2 ? 4 : 1, 1});
    try {
      return segment_sum(x, ids, 2);
    } catch (const IndexError& error) {
      CHECK(i == 2);
      CHECK_THAT(error.what(), contains("segment 4 is out of range for 2 segments"));
      return segment_sum(x, to(ids, i64) * 0, 2);
    }
  };
  check_as_immediate([&](const BatchOptions& options) { return batch_map(numbers(5), example, options); });
}

static std::vector<double> numbers_of(const Tensor& x) { return to(x, f64).to_vector<double>(); }

TEST_CASE("whole recurrent layers of examples whose sequences differ in length run as one") {
  manual_seed(8);
  auto check = [](const auto& layer, DType dtype) {
    std::vector<Tensor> inputs;
    for (std::int64_t length : {3, 1, 7, 3, 5, 12}) inputs.push_back(to(draw({length, 1, 4}), dtype));
    auto run = [&](const BatchOptions& options) {
      Tape tape;
      for (const Tensor& x : inputs) tape.watch(x);
      std::vector<Tensor> made = batch_map(
          inputs,
          [&](const Tensor& x) {
            auto result = layer(tanh(x));
            std::vector<Tensor> parts{flatten(result.output), flatten(result.h_n)};
            if constexpr (requires { result.c_n; }) parts.push_back(flatten(result.c_n));
            return concat(parts);
          },
          options);
      std::vector<Tensor> sources = layer.parameters(), losses;
      sources.insert(sources.end(), inputs.begin(), inputs.end());
      for (const Tensor& one : made) losses.push_back(sum(square(one)));
      std::vector<Tensor> gradients = tape.gradient(sum(stack(losses)), sources);
      return std::pair(std::move(made), std::move(gradients));
    };
    BatchReport report;
    auto [expected, expected_gradients] = run({.immediate = true});
    auto [found, gradients] = run({.report = &report});
    run({.verify = true});
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(numbers_of(found[i]) == numbers_of(expected[i]));
    check_close(gradients, expected_gradients, dtype == f64 ? 1e-12 : 1e-4);
    for (const BatchedLine& line : report.lines)
      if (line.op == "lstm" || line.op == "gru" || line.op == "rnn") CHECK(line.grouped == line.calls);
  };
  for (DType dtype : {f64, f32})
    for (bool bidirectional : {false, true}) {
      CAPTURE(dtype, bidirectional);
      check(nn::GRU(4, 3, {.layers = 2, .bidirectional = bidirectional, .dtype = dtype}), dtype);
      check(nn::RNN(4, 5, {.bidirectional = bidirectional, .dtype = dtype}), dtype);
      check(nn::RNN(4, 5, {.activation = RNNActivation::relu, .dtype = dtype}), dtype);
      check(nn::LSTM(4, 32, {.layers = 2, .bidirectional = bidirectional, .dtype = dtype}), dtype);
    }
}

TEST_CASE(
    "a recurrent layer with weights rounded to bf16, and an input that is not contiguous, runs as one for all "
    "examples") {
  manual_seed(10);
  nn::LSTM lstm(4, 16, {.weight_dtype = bf16});
  std::vector<Tensor> inputs;
  for (std::int64_t length : {2, 9, 4}) inputs.push_back(transpose(randn({4, length})));
  auto run = [&](const BatchOptions& options) {
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs, [&](const Tensor& x) { return flatten(lstm(unsqueeze(x, 1)).output); }, options);
    Tensor all = concat(made);
    std::vector<Tensor> results = tape.gradient(sum(square(all)), lstm.parameters());
    results.push_back(all);
    return results;
  };
  BatchReport report;
  // Sums of f32 in another order: their gradients are of 15 steps.
  check_close(run({.report = &report}), run({.immediate = true}), 1e-5);
  for (const BatchedLine& line : report.lines)
    if (line.op == "lstm") CHECK(line.grouped == 3);
}

TEST_CASE("a recurrent layer of several sequences in each example runs alone") {
  manual_seed(9);
  nn::LSTM lstm(4, 3, {.dtype = f64});
  BatchReport report;
  std::vector<Tensor> inputs{draw({3, 2, 4}), draw({5, 2, 4})};
  std::vector<Tensor> found = batch_map(inputs, [&](const Tensor& x) { return lstm(x).output; }, {.report = &report});
  for (const BatchedLine& line : report.lines)
    if (line.op == "lstm") CHECK(line.alone_by_op == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(found[i].to_vector<double>() == lstm(inputs[i]).output.to_vector<double>());
}

TEST_CASE("forward hooks of a module see and replace each example's own tensors") {
  manual_seed(5);
  nn::Linear layer(4, 3, {.dtype = f64});
  std::vector<Tensor> inputs = rows(6);
  std::vector<Tensor> seen, results;
  auto before = layer.before_forward([&](std::span<Tensor> tensors) {
    seen.push_back(tensors[0]);
    if (tensors[0](0, 0).item() > 0) tensors[0] = tensors[0] * 2;
  });
  auto after = layer.after_forward([&](std::span<Tensor> tensors) {
    results.push_back(tensors[0]);
    tensors[0] = sin(tensors[0]);
  });
  check_as_immediate([&](const BatchOptions& options) {
    seen.clear();
    results.clear();
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs, [&](const Tensor& x) { return layer(x * 1.5); }, options);
    CHECK(seen.size() == 6);
    std::vector<Tensor> found = sorted(seen);
    for (const Tensor& one : sorted(results)) found.push_back(one);
    Tensor all = concat(made, 0);
    found.push_back(all);
    for (const Tensor& one : tape.gradient(sum(square(all)), layer.parameters())) found.push_back(one);
    for (Tensor& one : found) one = stop_gradient(one);
    return found;
  });
}

TEST_CASE("backward hooks of a module see and replace each example's own gradients") {
  manual_seed(6);
  nn::Linear layer(4, 3, {.dtype = f64}), first(4, 4, {.dtype = f64});
  std::vector<Tensor> inputs = rows(6);
  std::vector<Tensor> of_results, of_inputs;
  auto before = layer.before_backward([&](std::span<Tensor> tensors) {
    of_results.push_back(copy(tensors[0]));
    tensors[0] = tensors[0] * tensors[0];
  });
  auto after = layer.after_backward([&](std::span<Tensor> tensors) {
    of_inputs.push_back(copy(tensors[0]));
    tensors[0] = tensors[0] * 3;
  });
  check_as_immediate([&](const BatchOptions& options) {
    of_results.clear();
    of_inputs.clear();
    Tape tape;
    std::vector<Tensor> made = batch_map(
        inputs, [&](const Tensor& x) { return layer(tanh(first(x))); }, options);
    std::vector<Tensor> sources = layer.parameters();
    for (const Tensor& one : first.parameters()) sources.push_back(one);
    std::vector<Tensor> found = tape.gradient(sum(square(concat(made, 0))), sources);
    CHECK(of_results.size() == 6);
    CHECK(of_inputs.size() == 6);
    for (const Tensor& one : sorted(of_results)) {
      CHECK(one.shape() == Shape{1, 3});
      found.push_back(one);
    }
    for (const Tensor& one : sorted(of_inputs)) found.push_back(one);
    return found;
  });
}

TEST_CASE("a listener is told of every op of every example, with its own tensors") {
  manual_seed(7);
  Tensor w = draw({4, 4}).requires_grad();
  std::vector<Tensor> inputs = rows(6);
  for (bool immediate : {true, false}) {
    CAPTURE(immediate);
    int products = 0, others = 0;
    bool right_shapes = true;
    {
      debug::Listen listen([&](const debug::OpEvent& event) {
        if (std::string_view(event.op) == "matmul") {
          ++products;
          right_shapes &= event.inputs.size() == 2 && event.inputs[0]->shape() == Shape{1, 4} &&
                          event.outputs[0].shape() == Shape{1, 4};
        } else {
          ++others;
        }
      });
      batch_map(inputs, [&](const Tensor& x) { return tanh(matmul(x, w)); }, {.immediate = immediate});
    }
    CHECK(products == 6);
    CHECK(others == 6);
    CHECK(right_shapes);
  }
}

TEST_CASE("steps of cells with a weight_dtype are joined, with the values and gradients of single examples") {
  manual_seed(6);
  nn::LSTMCell lstm(4, 6, {.weight_dtype = bf16});
  nn::GRUCell gru(6, 5, {.weight_dtype = f16});
  nn::RNNCell rnn(5, 3, {.weight_dtype = bf16});
  std::vector<std::int64_t> lengths{2, 4, 4, 1, 3, 4};
  std::vector<Tensor> inputs, parameters;
  for (std::int64_t length : lengths) inputs.push_back(randn({length, 1, 4}));
  for (const nn::Module* module :
       {static_cast<nn::Module*>(&lstm), static_cast<nn::Module*>(&gru), static_cast<nn::Module*>(&rnn)})
    for (const Tensor& one : module->parameters()) parameters.push_back(one);
  auto last_state = [&](const Tensor& x) {
    LSTMState state = lstm.initial_state(1);
    Tensor h = gru.initial_state(1), g = rnn.initial_state(1);
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      state = lstm(x(t), state);
      h = gru(state.h, h);
      g = rnn(h, g);
    }
    return g;
  };
  check_as_immediate(
      [&](const BatchOptions& options) {
        Tape tape;
        Tensor made = concat(batch_map(inputs, last_state, options), 0);
        std::vector<Tensor> results = tape.gradient(sum(square(made)), parameters);
        results.push_back(made);
        return results;
      },
      1e-5);
  BatchReport report;
  batch_map(inputs, last_state, {.report = &report});
  std::int64_t steps = 0;
  for (std::int64_t length : lengths) steps += length;
  // A step of the LSTM is one op; those of the two others have a product of the input, which all steps have in one group, and
  // one of the state.
  for (auto [op, products, expected] :
       {std::tuple("lstm_step", std::int64_t{1}, std::int64_t{4}), {"weight_product", 4, 2 * (1 + 4)}}) {
    CAPTURE(op);
    std::int64_t calls = 0, groups = 0;
    for (const BatchedLine& line : report.lines)
      if (line.op == op) calls += line.calls, groups += line.groups;
    CHECK(calls == products * steps);
    // All examples that have a step are one group.
    CHECK(groups == expected);
  }
}
