// A process with reel whose start and memory are measured from outside.

#include <reel/reel.h>

#include <cstdlib>

#include "process.h"

namespace {

using namespace reel;

void one_tensor() { zeros({4, 4}); }

void first_step() {
  Tensor x = ones({4, 8}), w = full({8, 8}, 0.1).requires_grad();
  Tape tape;
  tape.backward(sum(tanh(matmul(x, w))));
}

// Two training steps of an LSTM, so that memory cached for the second counts. `last` returns the last state.
template <class Last>
void train_lstm(Last last) {
  constexpr std::int64_t steps = 200, batch = 32, size = 512;
  nn::LSTMCell cell(size, size);
  optim::SGD sgd(cell.parameters(), {.learning_rate = 0.01});
  Tensor x = rand({steps, batch, size});
  for (int step = 0; step < 2; ++step) {
    Tape tape;
    tape.backward(sum(last(cell, x)));
    sgd.step();
    sgd.zero_grad();
  }
}

void lstm_step() {
  train_lstm([](nn::LSTMCell& cell, const Tensor& x) {
    LSTMState state = cell.initial_state(x.size(1));
    for (int t = 0; t < x.size(0); ++t) state = cell(x(t), state);
    return state.h;
  });
}

void lstm_layer_step() {
  train_lstm([](nn::LSTMCell& cell, const Tensor& x) { return lstm(x, {}, cell.weights()).h_n; });
}

// An LSTM of 50 steps that classifies into ten classes.
struct Classifier : nn::Module {
  nn::LSTMCell cell{*this, "cell", 128, 256};
  nn::Linear output{*this, "output", 256, 10};

  Tensor operator()(const Tensor& x) const {
    LSTMState state = cell.initial_state(x.size(1));
    for (int t = 0; t < x.size(0); ++t) state = cell(x(t), state);
    return softmax(output(state.h));
  }
};

void save_classifier() { io::save(reel_bench::file_beside("classifier.safetensors"), Classifier()); }

void predict() {
  Classifier model;
  io::load_into(model, reel_bench::file_beside("classifier.safetensors"));
  if (!(sum(model(ones({50, 1, 128}))).item() > 0.99)) std::exit(1);
}

}  // namespace

int main(int argument_count, char** arguments) {
  return reel_bench::run_task<6>(argument_count, arguments,
                                 {{{"one_tensor", one_tensor},
                                   {"first_step", first_step},
                                   {"lstm_step", lstm_step},
                                   {"lstm_layer_step", lstm_layer_step},
                                   {"save_classifier", save_classifier},
                                   {"predict", predict}}});
}
