#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <reel/tensor.h>

// Recurrent cells, and layers of them over sequences. A cell is given its input and what it carried out of the step
// before, and returns what it carries into the next:
//
//     lstm    a_i, a_f, a_g, a_o = x W_x + h W_h + b          four blocks of H columns, in this order
//             i = σ(a_i)   f = σ(a_f)   g = tanh(a_g)   o = σ(a_o)
//             c' = f c + i g
//             h' = o tanh(c')
//
//     gru     p_r, p_z, p_n = x W_x   and   q_r, q_z, q_n = h W_h          three blocks each
//             b_r, b_z, b_n, b_m = b                                      four
//             r = σ(p_r + q_r + b_r)   z = σ(p_z + q_z + b_z)
//             m = q_n + b_m            n = tanh(p_n + b_n + r m)
//             h' = (1 − z) n + z h
//
//     rnn     h' = act(x W_x + h W_h + b)          act: tanh or relu
//
//     tree    a_i, a_o, a_u, a_1 … a_N = a                    three blocks, and one for each of N children with c_1 … c_N
//             i = σ(a_i)   o = σ(a_o)   u = tanh(a_u)   f_k = σ(a_k)
//             c' = i u + Σ f_k c_k
//             h' = o tanh(c')
//
// x: (B, I), h and c: (B, H). A recurrent net of G blocks has W_x (I, G H), W_h (H, G H), b (G H), but 4 H for gru.
// Sources: lstm: Hochreiter and Schmidhuber, Long short-term memory (1997), with the forget gate of Gers et al. (2000);
// gru: Cho et al. (2014), with the reset gate behind the product as cuDNN has it; tree: Tai et al., Improved semantic
// representations from tree-structured long short-term memory networks (2015). The order of the gates is PyTorch's, but
// for tree's; PyTorch has its matrices transposed and two biases of which these are the sums, b_n and b_m of gru excepted.
//
// bf16 and f16 are worked out in f32 and rounded once, states that pass from step to step not at all.
// All throw ShapeError for sizes that do not fit, DTypeError unless all tensors are of one floating dtype, Error for an
// undefined one.

namespace reel {

/// What an LSTM carries from step to step.
struct LSTMState {
  Tensor h;  ///< (B, H): its output
  Tensor c;  ///< (B, H): its memory
};

/// The same values, cut off from the steps that led to them, to carry into the next stretch of a long sequence.
LSTMState stop_gradient(const LSTMState& state, Location where = Location::here());

/// The parameters of a cell, or of one direction of a layer.
struct RecurrentWeights {
  Tensor W_x;        ///< (I, G H)
  Tensor W_h;        ///< (H, G H)
  Tensor bias = {};  ///< (G H), of gru (4 H); undefined: zeros
};

enum class RNNActivation : std::uint8_t { tanh, relu };

/// One step of a long short-term memory.
LSTMState lstm_cell(const Arg& x, const LSTMState& state, const RecurrentWeights& weights);
/// The same from the two parts of the gates' arguments, a = p + q: p (B, 4 H), usually x W_x + b, which for many steps is
/// one large product, and q (B, 4 H), usually h W_h.
LSTMState lstm_cell(const Arg& p, const Arg& q, const Arg& c);

/// A node of a tree of long short-term memories, from the arguments of its gates, a (B, (3 + N) H), and what its N children
/// remember, each c_k (B, H); a leaf has no children. Where a comes from is free: [h_1 … h_N] U + b makes an N-ary tree.
LSTMState tree_lstm_cell(const Arg& a, std::span<const Tensor> c);
inline LSTMState tree_lstm_cell(const Arg& a, std::initializer_list<Tensor> c = {}) {
  return tree_lstm_cell(a, std::span(c.begin(), c.size()));
}

/// One step of a gated recurrent unit.
Tensor gru_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights);

/// One step of a plain recurrent net.
Tensor rnn_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights,
                RNNActivation activation = RNNActivation::tanh);

// Layers of cells over sequences x (T, B, I): T steps of B examples. Each takes the weights of its nets, with
// `.bidirectional` two a layer, the one from the first step to the last before the one back; the input of a later layer is
// the output of the one before, as wide as that. All have the same H. States are (nets, B, H), or undefined for zeros.
//
// With `.lengths`, example b has only its first lengths[b] steps. What x holds behind them does not matter, the output is
// 0 there, and a net that runs backwards starts at the last of them; a state at the end is that behind the last step of
// each example, or the initial state where there is none. The lengths need no order, and the time that a layer takes is
// proportional to their sum.
// Source: PyTorch's LSTM, GRU and RNN, over packed sequences.

struct RecurrentOptions {
  /// (B), of i32 or i64, in [0, T]; undefined: all T. They are read on the CPU: kept there, nothing waits for a GPU.
  Tensor lengths = {};
  bool bidirectional = false;
};

struct LSTMOutput {
  Tensor output;  ///< (T, B, H), with two directions (T, B, 2 H): h after each step, of the last layer
  Tensor h_n;     ///< (nets, B, H): h after each net's last step
  Tensor c_n;     ///< (nets, B, H)
};

struct RecurrentOutput {
  Tensor output;  ///< As of LSTMOutput.
  Tensor h_n;     ///< (nets, B, H)
};

/// Layers of long short-term memories. Throws: IndexError for a length outside [0, T].
LSTMOutput lstm(const Arg& x, const LSTMState& state, std::span<const RecurrentWeights> weights,
                const RecurrentOptions& options = {});
/// A single net.
inline LSTMOutput lstm(const Arg& x, const LSTMState& state, const RecurrentWeights& weights,
                       const RecurrentOptions& options = {}) {
  return lstm(x, state, std::span(&weights, 1), options);
}

/// Layers of gated recurrent units. Throws: IndexError for a length outside [0, T].
RecurrentOutput gru(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RecurrentOptions& options = {});
/// A single net.
inline RecurrentOutput gru(const Arg& x, const Tensor& h, const RecurrentWeights& weights,
                           const RecurrentOptions& options = {}) {
  return gru(x, h, std::span(&weights, 1), options);
}

struct RNNOptions {
  Tensor lengths = {};
  bool bidirectional = false;
  RNNActivation activation = RNNActivation::tanh;
};

/// Layers of plain recurrent nets. Throws: IndexError for a length outside [0, T].
RecurrentOutput rnn(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RNNOptions& options = {});
/// A single net.
inline RecurrentOutput rnn(const Arg& x, const Tensor& h, const RecurrentWeights& weights,
                           const RNNOptions& options = {}) {
  return rnn(x, h, std::span(&weights, 1), options);
}

}  // namespace reel
