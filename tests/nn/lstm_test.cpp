#include <reel/debug/gradcheck.h>
#include <reel/nn.h>
#include <reel/ops.h>
#include <reel/tape.h>

#include <cmath>

#include "catch.h"
#include "checks.h"

using namespace reel;
using namespace reel_test;

namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Row {
  std::vector<double> h, c;
};

// The equations, written out for one example.
Row reference(const nn::LSTMCell& cell, const std::vector<double>& x, const Row& before) {
  std::vector<double> wx = cell.W_x.to_vector<double>(), wh = cell.W_h.to_vector<double>();
  std::vector<double> b = cell.bias.to_vector<double>();
  std::size_t size = before.h.size(), width = 4 * size;
  auto argument = [&](std::size_t gate, std::size_t k) {
    std::size_t column = gate * size + k;
    double sum = b[column];
    for (std::size_t j = 0; j < x.size(); ++j) sum += x[j] * wx[j * width + column];
    for (std::size_t j = 0; j < size; ++j) sum += before.h[j] * wh[j * width + column];
    return sum;
  };
  Row after{std::vector<double>(size), std::vector<double>(size)};
  for (std::size_t k = 0; k < size; ++k) {
    double i = sigmoid_of(argument(0, k)), f = sigmoid_of(argument(1, k));
    double g = std::tanh(argument(2, k)), o = sigmoid_of(argument(3, k));
    after.c[k] = f * before.c[k] + i * g;
    after.h[k] = o * std::tanh(after.c[k]);
  }
  return after;
}

std::vector<double> row_of(const Tensor& x, std::int64_t i) { return select(x, 0, i).to_vector<double>(); }

void check_close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-12).margin(1e-14));
}

}  // namespace

TEST_CASE("LSTMCell computes its equations, step after step") {
  manual_seed(5);
  constexpr std::int64_t batch = 3, steps = 4;
  nn::LSTMCell cell(2, 5, {.forget_bias = 0.5, .dtype = f64});
  Tensor inputs = draw({steps, batch, 2});
  nn::LSTMState state{draw({batch, 5}), draw({batch, 5})};
  std::vector<Row> rows;
  for (std::int64_t b = 0; b < batch; ++b) rows.push_back({row_of(state.h, b), row_of(state.c, b)});
  for (std::int64_t t = 0; t < steps; ++t) {
    Tensor x = select(inputs, 0, t);
    state = cell(x, state);
    for (std::int64_t b = 0; b < batch; ++b) {
      Row& row = rows[static_cast<std::size_t>(b)];
      row = reference(cell, row_of(x, b), row);
      check_close(row_of(state.h, b), row.h);
      check_close(row_of(state.c, b), row.c);
    }
  }
}

TEST_CASE("a step from projected inputs has the gradients of its equations") {
  manual_seed(4);
  constexpr std::int64_t size = 3;
  nn::LSTMCell cell(2, size, {.dtype = f64});
  Tensor x = randn({4, 2}, {.dtype = f64}), h = randn({4, size}, {.dtype = f64}), c = randn({4, size}, {.dtype = f64});
  auto gradients = [&](auto step) {
    std::vector<Tensor> sources = cell.parameters();
    sources.insert(sources.end(), {x, h, c});
    Tape tape;
    for (const Tensor& tensor : {x, h, c}) tape.watch(tensor);
    nn::LSTMState next = step();
    return tape.gradient(sum(square(next.h)) + sum(next.c * next.h), sources);
  };
  std::vector<Tensor> found = gradients([&] { return cell.step(cell.project(x), {h, c}); });
  std::vector<Tensor> at_once = gradients([&] { return cell(x, {h, c}); });
  std::vector<Tensor> expected = gradients([&] {
    Tensor a = matmul(x, cell.W_x) + matmul(h, cell.W_h) + cell.bias;
    auto gate = [&](int k) { return slice(a, 1, k * size, (k + 1) * size); };
    Tensor next = sigmoid(gate(1)) * c + sigmoid(gate(0)) * tanh(gate(2));
    return nn::LSTMState{sigmoid(gate(3)) * tanh(next), next};
  });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(max(abs(found[i] - expected[i])).item() < 1e-12);
    CHECK(max(abs(at_once[i] - expected[i])).item() < 1e-12);
  }
}

TEST_CASE("projecting all inputs of an LSTM at once gives the same states as one by one") {
  manual_seed(6);
  nn::LSTMCell cell(3, 4, {.dtype = f64});
  Tensor inputs = draw({5, 2, 3});
  Tensor projected = cell.project(inputs);
  CHECK(projected.shape() == Shape{5, 2, 16});
  nn::LSTMState one_by_one = cell.initial_state(2), at_once = cell.initial_state(2);
  for (std::int64_t t = 0; t < 5; ++t) {
    one_by_one = cell(select(inputs, 0, t), one_by_one);
    at_once = cell.step(select(projected, 0, t), at_once);
    check_close(one_by_one.h.to_vector<double>(), at_once.h.to_vector<double>());
    check_close(one_by_one.c.to_vector<double>(), at_once.c.to_vector<double>());
  }
  nn::LSTMState stepped = cell.step(cell.project(select(inputs, 0, 0)), cell.initial_state(2));
  nn::LSTMState called = cell(select(inputs, 0, 0), cell.initial_state(2));
  CHECK(stepped.h.to_vector<double>() == called.h.to_vector<double>());
}

TEST_CASE("lstm with the weights of an LSTMCell takes all its steps at once") {
  manual_seed(9);
  nn::LSTMCell cell(3, 4, {.dtype = f64});
  Tensor inputs = draw({5, 2, 3});
  nn::LSTMState state{draw({2, 4}), draw({2, 4})};
  LSTMOutput at_once = lstm(inputs, {unsqueeze(state.h, 0), unsqueeze(state.c, 0)}, cell.weights());
  for (std::int64_t t = 0; t < 5; ++t) {
    state = cell(select(inputs, 0, t), state);
    check_close(select(at_once.output, 0, t).to_vector<double>(), state.h.to_vector<double>());
  }
  check_close(at_once.h_n.to_vector<double>(), state.h.to_vector<double>());
  check_close(at_once.c_n.to_vector<double>(), state.c.to_vector<double>());
}

TEST_CASE("gradients through two LSTM steps, by inputs, states and weights, agree with differences") {
  manual_seed(7);
  auto f = [](std::span<const Tensor> in) {
    nn::LSTMCell cell(2, 2, {.dtype = f64});
    cell.W_x = in[3];
    cell.W_h = in[4];
    cell.bias = in[5];
    nn::LSTMState state = cell(in[0], {in[1], in[2]});
    state = cell(in[0] * 0.5, state);
    return concat({state.h, state.c}, 1);
  };
  std::vector<Tensor> inputs{draw({2, 2}), draw({2, 2}), draw({2, 2}), draw({2, 8}), draw({2, 8}), draw({8})};
  auto report = debug::gradcheck(f, inputs);
  INFO(report.text);
  CHECK(report);
  auto second = debug::gradgradcheck(f, inputs);
  INFO(second.text);
  CHECK(second);
}

TEST_CASE("an LSTM starts uniform on one over the root of its size, its forget gate raised as asked") {
  manual_seed(8);
  nn::LSTMCell cell(10, 100, {.forget_bias = 1});
  CHECK(max(cell.W_x).item() <= 0.1);
  CHECK(max(cell.W_h).item() > 0.0999);
  std::vector<Tensor> by_gate = split(cell.bias, 100);
  for (std::size_t gate = 0; gate < 4; ++gate) {
    double raised = gate == 1 ? 1 : 0;
    CHECK(std::abs(mean(by_gate[gate]).item() - raised) < 0.03);
    CHECK(max(by_gate[gate]).item() <= 0.1 + raised + 1e-6);
  }
  nn::LSTMState state = cell.initial_state(3);
  CHECK(state.h.shape() == Shape{3, 100});
  CHECK(max(state.c).item() == 0);
}

TEST_CASE("an LSTM's state is carried across tapes with stop_gradient") {
  nn::LSTMCell cell(2, 3);
  nn::LSTMState state = cell.initial_state(1);
  for (int chunk = 0; chunk < 2; ++chunk) {
    Tape tape;
    state = cell(ones({1, 2}), state);
    tape.backward(sum(state.h));
    state = stop_gradient(state);
  }
  CHECK(cell.W_h.grad().defined());
}

TEST_CASE("LSTMCell names the caller's line and the shapes that do not fit") {
  nn::LSTMCell cell(2, 3);
  nn::LSTMState state = cell.initial_state(4);
  Tensor x = ones({4, 5});
  int line = __LINE__ + 1;
  std::string text = error_of<ShapeError>([&] { cell(x, state); });
  CHECK(text == "LSTMCell: x (4, 5) is neither (B, 2) nor (T, B, 2), as W_x (2, 12) needs; at " +
                    to_string(Location{__FILE__, line}));
  CHECK_THAT(error_of<ShapeError>([&] {
               cell(ones({3, 2}), state);
             }),
             contains("takes projected inputs (B, 12) with h (B, 3) and c (B, 3), not (3, 12) with (4, 3) and (4, 3)"));
  CHECK_THAT(error_of<ShapeError>([&] { cell.step(ones({2, 4, 12}), state); }), contains("not (2, 4, 12) with"));
  CHECK_THAT(error_of<ShapeError>([&] { cell.step(ones({12}), state); }), contains("not (12,) with"));
  CHECK_THAT(error_of<ShapeError>([&] { cell.step(ones({}), state); }), contains("not () with"));
  CHECK_THAT(error_of<ShapeError>([&] { cell(ones({4, 2}), {state.h, Tensor()}); }), contains("and undefined"));
  CHECK_THAT(error_of<ShapeError>([] { nn::LSTMCell(2, 0); }), contains("not input 2, hidden 0"));
}
