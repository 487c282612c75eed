#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// PyTorch multiplies from the other side and has two biases.
at::Tensor turned(const at::Tensor& weights) { return weights.transpose(0, 1); }

// Of gru: ours are b_r, b_z, b_n, b_m.
struct Biases {
  at::Tensor input, state;
};
Biases gru_biases(const at::Tensor& bias) {
  std::vector<at::Tensor> parts = at::chunk(bias, 4);
  return {at::cat({parts[0], parts[1], parts[2]}),
          at::cat({at::zeros_like(parts[0]), at::zeros_like(parts[1]), parts[3]})};
}

}  // namespace

void add_recurrent_peers(Peers& peers) {
  peers["lstm_cell"] = [](Tensors x, Given) {
    auto [h, c] = at::lstm_cell(x[0], {x[1], x[2]}, turned(x[3]), turned(x[4]), x[5], at::zeros_like(x[5]));
    return at::cat({h, c}, 1);
  };
  peers["gru_cell"] = [](Tensors x, Given) {
    auto [input, state] = gru_biases(x[4]);
    return at::gru_cell(x[0], x[1], turned(x[2]), turned(x[3]), input, state);
  };
  peers["rnn_cell"] = [](Tensors x, Given given) {
    auto cell = given.flag("relu") ? at::rnn_relu_cell : at::rnn_tanh_cell;
    return cell(x[0], x[1], turned(x[2]), turned(x[3]), x[4], at::zeros_like(x[4]));
  };
}

}  // namespace reel_test
