// Records the training of a recurrent net, for tests of what reads recordings: write_recording FILE OPS [KIND].
//
// KIND `rnn` (default) is a plain net, whose gradients vanish over time, `lstm` a long short-term memory. A run of at least OPS
// ops has two dead units of 16, and ends with the logarithm of a negative number in time step 300.

#include <cstdint>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include <reel/reel.h>

using namespace reel;

namespace {

constexpr std::int64_t inputs = 4, hidden = 16;

struct PlainCell : nn::Module {
  using nn::Module::Module;
  nn::Linear input{*this, "input", inputs, hidden};
  nn::Linear state{*this, "state", hidden, hidden};

  Tensor operator()(const Tensor& x, const Tensor& h, Location where = Location::here()) const {
    return call("PlainCell", {x, h}, where, [&](const Tensor& x, const Tensor& h) {
      // Weights below 1 make gradients vanish.
      return tanh(input(x) + 0.6f * state(h));
    });
  }
};

struct LongShortTermCell : nn::Module {
  using nn::Module::Module;
  nn::Linear gates{*this, "gates", inputs + hidden, 4 * hidden};

  LSTMState operator()(const Tensor& x, const LSTMState& before, Location where = Location::here()) const {
    LSTMState state;
    state.h = call("LongShortTermCell", {x, before.h}, where, [&](const Tensor& x, const Tensor& h) {
      std::vector<Tensor> parts = split(gates(concat({x, h}, 1)), hidden, 1);
      // A gate that begins open keeps gradients alive.
      state.c = sigmoid(parts[0] + 2.0f) * before.c + sigmoid(parts[1]) * tanh(parts[2]);
      return sigmoid(parts[3]) * tanh(state.c);
    });
    return state;
  }
};

struct Net : nn::Module {
  PlainCell cell{*this, "cell"};
  LongShortTermCell memory{*this, "memory"};
  nn::Linear output{*this, "output", hidden, 2};
};

// The loss after `steps` time steps of random inputs.
Tensor loss_of(const Net& net, bool lstm, int steps) {
  LSTMState state{zeros({8, hidden}), zeros({8, hidden})};
  for (int t = 0; t < steps; ++t) {
    auto note = debug::note("t", t);
    Tensor x = randn({8, inputs});
    if (lstm)
      state = net.memory(x, state);
    else
      state.h = net.cell(x, state.h);
  }
  Tensor shift = full({hidden}, 2);
  shift.write<float>()[3] = shift.write<float>()[5] = -9;
  Tensor activation = relu(state.h + shift);
  return mean(square(net.output(state.h) - 1.0f)) + 0.01f * mean(activation);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print(stderr, "write_recording: write_recording FILE OPS [rnn|lstm]\n");
    return 2;
  }
  bool lstm = count > 3 && std::string(arguments[3]) == "lstm";
  std::int64_t least = std::stoll(arguments[2]), ops = 0;
  manual_seed(1);
  Net net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  debug::Recording recording(arguments[1]);
  debug::Listen counter([&](const debug::OpEvent&) { ++ops; });
  // Recorded gradients and sources come on top.
  while (ops < least / 2) {
    Tape tape;
    tape.backward(loss_of(net, lstm, 60));
    sgd.step();
    sgd.zero_grad();
  }
  for (int t = 0; t < 310; ++t) {
    auto note = debug::note("t", t);
    Tensor h = tanh(randn({2, 3}));
    if (t == 300) h = log(h - 2.0f);
  }
}
