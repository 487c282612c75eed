#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

// PyTorch multiplies from the other side and has two biases.
at::Tensor transposed(const at::Tensor& weights) { return weights.transpose(0, 1); }

// The biases of gru: ours are b_r, b_z, b_n, b_m.
struct Biases {
  at::Tensor input, state;
};
Biases gru_biases(const at::Tensor& bias) {
  std::vector<at::Tensor> parts = at::chunk(bias, 4);
  return {at::cat({parts[0], parts[1], parts[2]}),
          at::cat({at::zeros_like(parts[0]), at::zeros_like(parts[1]), parts[3]})};
}

// x, states, weights of each net, lengths, as the rows have them, in libtorch's terms.
struct Net {
  at::Tensor x, lengths, order, inverse_order;
  std::vector<at::Tensor> states, weights;
  std::int64_t layers;
  bool bidirectional;

  Net(Tensors given, Given attributes, std::size_t state_count, bool gru)
      : x(given[0]), layers(attributes.integer("layers")), bidirectional(attributes.flag("bidirectional")) {
    bool ragged = attributes.flag("ragged");
    if (ragged) {
      // Theirs must be sorted.
      order = at::argsort(given.back(), 0, true);
      inverse_order = at::argsort(order);
      lengths = given.back().index_select(0, order);
      x = x.index_select(1, order);
    }
    for (std::size_t i = 1; i <= state_count; ++i)
      states.push_back(ragged ? given[i].index_select(1, order) : given[i]);
    std::size_t end = given.size() - (ragged ? 1 : 0);
    for (std::size_t i = state_count + 1; i < end; i += 3) {
      const at::Tensor& bias = given[i + 2];
      Biases biases = gru ? gru_biases(bias) : Biases{bias, at::zeros_like(bias)};
      for (const at::Tensor& weight : {transposed(given[i]), transposed(given[i + 1]), biases.input, biases.state})
        weights.push_back(weight.contiguous());
    }
  }

  // run(x) or run(packed rows, their counts): output and states.
  template <class Whole, class Packed>
  at::Tensor run(Whole whole, Packed packed) const {
    std::vector<at::Tensor> results;
    if (lengths.defined()) {
      auto [rows, counts] = at::_pack_padded_sequence(x, lengths, false);
      results = packed(rows, counts);
      results[0] = std::get<0>(at::_pad_packed_sequence(results[0], counts, false, 0, x.size(0)));
      for (at::Tensor& result : results) result = result.index_select(1, inverse_order);
    } else {
      results = whole(x);
    }
    for (at::Tensor& result : results) result = result.flatten();
    return at::cat(results);
  }
};

template <class Whole, class Packed>
at::Tensor run_plain(const Net& net, Whole whole, Packed packed) {
  return net.run(
      [&](const at::Tensor& x) {
        auto [y, h] = whole(x, net.states[0], net.weights, true, net.layers, 0, false, net.bidirectional, false);
        return std::vector<at::Tensor>{y, h};
      },
      [&](const at::Tensor& rows, const at::Tensor& counts) {
        auto [y, h] = packed(rows, counts, net.states[0], net.weights, true, net.layers, 0, false, net.bidirectional);
        return std::vector<at::Tensor>{y, h};
      });
}

}  // namespace

void add_recurrent_peers(Peers& peers) {
  peers["lstm_cell"] = [](Tensors x, Given given) {
    if (given.flag("projected")) {
      // Theirs takes no h that is narrower or wider than c.
      std::vector<at::Tensor> a = (x[0] + at::matmul(x[1], x[3])).chunk(4, 1);
      at::Tensor c = at::sigmoid(a[1]) * x[2] + at::sigmoid(a[0]) * at::tanh(a[2]);
      return at::cat({at::sigmoid(a[3]) * at::tanh(c), c}, 1);
    }
    auto [h, c] = at::lstm_cell(x[0], {x[1], x[2]}, transposed(x[3]), transposed(x[4]), x[5], at::zeros_like(x[5]));
    return at::cat({h, c}, 1);
  };
  peers["tree_lstm_cell"] = [](Tensors x, Given given) {
    bool of_states = given.flag("states");
    std::size_t children = of_states ? x.size() / 2 - 1 : x.size() - 1;
    std::vector<at::Tensor> h, c, p;
    for (std::size_t k = 0; k < children; ++k) c.push_back(x[of_states ? 3 + 2 * k : 1 + k]);
    at::Tensor arguments = x[0];
    if (of_states) {
      for (std::size_t k = 0; k < children; ++k) h.push_back(x[2 + 2 * k]);
      p = x[0].chunk(4, -1);
      p.insert(p.end(), children - 1, p[3]);
      arguments = at::cat(p, -1) + at::matmul(at::cat(h, 1), x[1]);
    }
    std::vector<at::Tensor> a = arguments.chunk(static_cast<std::int64_t>(children) + 3, 1);
    at::Tensor sum = at::sigmoid(a[0]) * at::tanh(a[2]);
    for (std::size_t k = 0; k < children; ++k) sum = sum + at::sigmoid(a[3 + k]) * c[k];
    return at::cat({at::sigmoid(a[1]) * at::tanh(sum), sum}, 1);
  };
  peers["gru_cell"] = [](Tensors x, Given) {
    auto [input, state] = gru_biases(x[4]);
    return at::gru_cell(x[0], x[1], transposed(x[2]), transposed(x[3]), input, state);
  };
  peers["rnn_cell"] = [](Tensors x, Given given) {
    auto cell = given.flag("relu") ? at::rnn_relu_cell : at::rnn_tanh_cell;
    return cell(x[0], x[1], transposed(x[2]), transposed(x[3]), x[4], at::zeros_like(x[4]));
  };
  peers["lstm"] = [](Tensors x, Given given) {
    Net net(x, given, 2, false);
    return net.run(
        [&](const at::Tensor& whole) {
          auto [y, h, c] =
              at::lstm(whole, net.states, net.weights, true, net.layers, 0, false, net.bidirectional, false);
          return std::vector<at::Tensor>{y, h, c};
        },
        [&](const at::Tensor& rows, const at::Tensor& counts) {
          auto [y, h, c] =
              at::lstm(rows, counts, net.states, net.weights, true, net.layers, 0, false, net.bidirectional);
          return std::vector<at::Tensor>{y, h, c};
        });
  };
  peers["gru"] = [](Tensors x, Given given) {
    return run_plain(
        Net(x, given, 1, true), [](auto&&... values) { return at::gru(values...); },
        [](auto&&... values) { return at::gru(values...); });
  };
  peers["rnn"] = [](Tensors x, Given given) {
    auto run = [&](auto&&... values) { return given.flag("relu") ? at::rnn_relu(values...) : at::rnn_tanh(values...); };
    return run_plain(Net(x, given, 1, false), run, run);
  };
}

}  // namespace reel_test
