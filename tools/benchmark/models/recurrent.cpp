#include <cmath>

#include "examples.h"

namespace reel_bench {

using namespace reel;

namespace {

// Σ h_T after steps over x (T, B, I); `step` computes a state from the step's index and the previous state.
template <class Step>
Tensor last_sum(int steps, std::int64_t batch, std::int64_t size, Step step) {
  LSTMState state{zeros({batch, size}), zeros({batch, size})};
  for (int t = 0; t < steps; ++t) state = step(t, state);
  return sum(state.h);
}

LSTMState composed_step(const Tensor& x, const LSTMState& state, const Tensor& weight, const Tensor& bias) {
  std::vector<Tensor> gates = chunk(matmul(concat({x, state.h}, 1), weight) + bias, 4, 1);
  Tensor c = sigmoid(gates[1]) * state.c + sigmoid(gates[0]) * tanh(gates[2]);
  return {sigmoid(gates[3]) * tanh(c), c};
}

}  // namespace

Work lstm_by_hand(LSTMForm form, std::int64_t batch, std::int64_t size) {
  float bound = 1 / std::sqrt(static_cast<float>(size));
  Tensor inputs = drawn_tensor(1, 1, {lstm_steps, batch, size});
  Tensor weight = drawn_tensor(2, bound, {2 * size, 4 * size}), bias = drawn_tensor(3, bound, {4 * size});
  std::vector<Tensor> steps;
  for (int t = 0; t < lstm_steps; ++t) steps.push_back(copy(squeeze(slice(inputs, 0, t, t + 1), 0)));

  auto cell = std::make_shared<nn::LSTMCell>(size, size);
  auto set = [](Tensor& parameter, const Tensor& values) { parameter = copy(values).requires_grad(); };
  set(cell->W_x, slice(weight, 0, 0, size));
  set(cell->W_h, slice(weight, 0, size, 2 * size));
  set(cell->bias, bias);
  weight.requires_grad();
  bias.requires_grad();
  std::vector<Tensor> parameters{cell->W_x, cell->W_h, cell->bias, weight, bias};
  return [=] {
    Tape tape;
    Tensor loss;
    if (form == LSTMForm::cell) {
      loss = last_sum(lstm_steps, batch, size, [&](int t, const LSTMState& state) {
        return (*cell)(steps[static_cast<std::size_t>(t)], state);
      });
    } else if (form == LSTMForm::projected) {
      Tensor projected = cell->project(inputs);
      loss = last_sum(lstm_steps, batch, size,
                      [&](int t, const LSTMState& state) { return cell->step(projected(t), state); });
    } else {
      loss = last_sum(lstm_steps, batch, size, [&](int t, const LSTMState& state) {
        return composed_step(steps[static_cast<std::size_t>(t)], state, weight, bias);
      });
    }
    double found = loss.item();
    tape.backward(loss);
    for (const Tensor& parameter : parameters) parameter.set_grad({});
    return found;
  };
}

Work lstm_examples(const BatchOptions& options) {
  constexpr std::int64_t batch = 32, size = 512;
  manual_seed(examples_seed);
  auto cell = std::make_shared<nn::LSTMCell>(size, size);
  std::vector<Tensor> examples;
  for (std::uint64_t i = 0; i < large_examples; ++i)
    examples.push_back(drawn_tensor(1 + i, 1, {lstm_steps, batch, size}));
  return [=] {
    Tape tape;
    auto loss = [&](const Tensor& x) {
      return last_sum(lstm_steps, batch, size, [&](int t, const LSTMState& state) { return (*cell)(x(t), state); });
    };
    Tensor total = sum(stack(batch_map(examples, loss, options)));
    tape.backward(total);
    for (const Tensor& parameter : cell->parameters()) parameter.set_grad({});
    return total.item();
  };
}

Work lstm_layer(int steps, std::int64_t batch, std::int64_t size) {
  float bound = 1 / std::sqrt(static_cast<float>(size));
  Tensor x = drawn_tensor(1, 1, {steps, batch, size}).requires_grad();
  RecurrentWeights weights{drawn_tensor(2, bound, {size, 4 * size}).requires_grad(),
                           drawn_tensor(3, bound, {size, 4 * size}).requires_grad(),
                           drawn_tensor(4, bound, {4 * size}).requires_grad()};
  Tensor seed = ones({steps, batch, size});
  return [=] {
    Tape tape;
    Tensor output = lstm(x, {}, weights).output;
    float found = output.data<float>()[output.numel() - 1];
    tape.backward(output, {.seed = seed});
    for (const Tensor& source : {x, weights.W_x, weights.W_h, weights.bias}) source.set_grad({});
    return found;
  };
}

Work lstm_of_weight_dtype(bool layer, bool trains, DType weight_dtype) {
  constexpr std::int64_t size = 512;
  manual_seed(5);
  auto net = std::make_shared<nn::LSTM>(size, size, nn::LSTMOptions{.weight_dtype = weight_dtype});
  Tensor x = drawn_tensor(1, 1, {lstm_steps, 1, size});
  std::vector<Tensor> steps;
  for (int t = 0; t < lstm_steps; ++t) steps.push_back(copy(x(t)));
  auto loss = [=] {
    if (layer) return sum((*net)(x).h_n);
    return last_sum(lstm_steps, 1, size, [&](int t, const LSTMState& state) {
      return net->nets[0](steps[static_cast<std::size_t>(t)], state);
    });
  };
  return [=] {
    for (Tensor parameter : net->parameters()) static_cast<void>(parameter.write<float>());
    if (!trains) {
      NoRecord pause;
      return loss().item();
    }
    Tape tape;
    Tensor found = loss();
    tape.backward(found);
    for (const Tensor& parameter : net->parameters()) parameter.set_grad({});
    return found.item();
  };
}

}  // namespace reel_bench
