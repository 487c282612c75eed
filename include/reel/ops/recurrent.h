#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include <reel/tensor.h>

/// \file
/// Recurrent cells, and layers of them over sequences. A cell maps its input and the state of the previous step to the
/// next state:
///
///     lstm    a_i, a_f, a_g, a_o = x W_x + h W_h + b          four blocks of H columns, in this order
///             i = σ(a_i)   f = σ(a_f)   g = tanh(a_g)   o = σ(a_o)
///             c' = f c + i g
///             h' = o tanh(c')
///
///     gru     p_r, p_z, p_n = x W_x   and   q_r, q_z, q_n = h W_h          three blocks each
///             b_r, b_z, b_n, b_m = b                                      four
///             r = σ(p_r + q_r + b_r)   z = σ(p_z + q_z + b_z)
///             m = q_n + b_m            n = tanh(p_n + b_n + r m)
///             h' = (1 − z) n + z h
///
///     rnn     h' = act(x W_x + h W_h + b)          act: tanh or relu
///
///     tree    a_i, a_o, a_u, a_1 … a_N = a                    three blocks, and one for each of N children, c_1 … c_N
///             i = σ(a_i)   o = σ(a_o)   u = tanh(a_u)   f_k = σ(a_k)
///             c' = i u + Σ f_k c_k
///             h' = o tanh(c')
///
/// x: (B, I), h and c: (B, H). A recurrent net of G blocks has W_x (I, G H), W_h (H, G H), b (G H), but 4 H for gru.
///
/// Layers run cells over sequences x (T, B, I): T steps of B examples. Each takes the weights of its nets, with
/// `.bidirectional` two a layer, the one from the first step to the last before the one in reverse; the input of a
/// later layer is the output of the previous one. All nets have one H. States are (nets, B, H), or undefined for zeros.
/// With `.lengths`, example b has only its first lengths[b] steps: what x holds behind them is ignored, the output is 0
/// there, a net in reverse starts at the last of them, and a final state is that behind the last step of each example,
/// or the initial state where there is none. The lengths need no order, and the time of a layer is proportional to
/// their sum.
///
/// bf16 and f16 are computed in f32 and rounded once; states that pass from step to step are not rounded.
/// Source: lstm: Hochreiter and Schmidhuber, Long short-term memory (1997), with the forget gate of Gers et al. (2000);
/// gru: Cho et al. (2014), with the reset gate behind the product as in cuDNN; tree: Tai et al., Improved semantic
/// representations from tree-structured long short-term memory networks (2015). The order of the gates is PyTorch's,
/// except for tree; PyTorch has its matrices transposed and two biases of which these are the sums, except for b_n and
/// b_m of gru.

namespace reel {

/// The state of an LSTM, carried from step to step.
struct LSTMState {
  Tensor h;  ///< (B, H): its output
  Tensor c;  ///< (B, H): its cell state
};

/// Returns states that share the elements of `state` but are not tracked, to carry them into the next segment of a long
/// sequence.
/// Throws: Error if h or c is undefined.
LSTMState stop_gradient(const LSTMState& state, Location where = Location::here());

/// The parameters of a cell, or of one direction of a layer, with G blocks: 4 of lstm, 3 of gru, 1 of rnn.
struct RecurrentWeights {
  Tensor W_x;        ///< (I, G H)
  Tensor W_h;        ///< (H, G H)
  Tensor bias = {};  ///< (G H), of gru (4 H); undefined: zeros
  /// bf16 or f16: W_x and W_h, of f32, are rounded to it in every product, forward and backward, which on a CPU lets a
  /// step of few examples read half as many bytes. Sums and activations stay in f32; the gradients of W_x and W_h are
  /// those of the rounded weights. Unset (default), or the weights' own dtype: not rounded.
  std::optional<DType> weight_dtype = {};
};

/// The activation of a plain recurrent net: tanh or relu.
enum class RNNActivation : std::uint8_t { tanh, relu };

/// One step of a long short-term memory: x (B, I), state (B, H) → the next state (B, H). i, f, g, o = σ(a_i), σ(a_f),
/// tanh(a_g), σ(a_o) with a = x W_x + h W_h + b; c' = f c + i g; h' = o tanh(c').
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Hochreiter and Schmidhuber, Long short-term memory (1997); Gers et al. (2000).
LSTMState lstm_cell(const Arg& x, const LSTMState& state, const RecurrentWeights& weights);
/// One step of a long short-term memory from the two parts of the gates' arguments, a = p + q: p (B, 4 H), usually x
/// W_x + b, which for many steps is one large product, and q (B, 4 H), usually h W_h; c (B, H) → the next state (B, H).
/// i, f, g, o = σ(a_i), σ(a_f), tanh(a_g), σ(a_o); c' = f c + i g; h' = o tanh(c').
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Hochreiter and Schmidhuber, Long short-term memory (1997); Gers et al. (2000).
LSTMState lstm_cell(const Arg& p, const Arg& q, const Arg& c);
/// One step of a long short-term memory whose inputs are projected already: p (B, 4 H), usually x W_x + b, which for many
/// steps is one large product; state: h (B, P), c (B, H); W_h (P, 4 H) → the next state (B, H). i, f, g, o = σ(a_i),
/// σ(a_f), tanh(a_g), σ(a_o) with a = p + h W_h; c' = f c + i g; h' = o tanh(c'). P is H unless h is a projection of h'.
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Hochreiter and Schmidhuber, Long short-term memory (1997); Gers et al. (2000).
LSTMState lstm_cell(const Arg& p, const LSTMState& state, const Arg& W_h);

/// A node of a Tree-LSTM, from the arguments of its gates, a (B, (3 + N) H), and the cell states of its N children,
/// each c_k (B, H) → the state of the node (B, H); a leaf has no children. i, o, u, f_k = σ(a_i), σ(a_o), tanh(a_u),
/// σ(a_k); c' = i u + Σ f_k c_k; h' = o tanh(c'). Any function may compute a: [h_1 … h_N] U + b makes an N-ary tree.
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (2015).
LSTMState tree_lstm_cell(const Arg& a, std::span<const Tensor> c);
/// A node of a Tree-LSTM, from the arguments of its gates, a (B, (3 + N) H), and the cell states of its N children,
/// each c_k (B, H) → the state of the node (B, H); a leaf has no children. i, o, u, f_k = σ(a_i), σ(a_o), tanh(a_u),
/// σ(a_k); c' = i u + Σ f_k c_k; h' = o tanh(c'). Any function may compute a: [h_1 … h_N] U + b makes an N-ary tree.
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (2015).
inline LSTMState tree_lstm_cell(const Arg& a, std::initializer_list<Tensor> c = {}) {
  return tree_lstm_cell(a, std::span(c.begin(), c.size()));
}
/// A node of an N-ary Tree-LSTM with the product of its children's outputs: p (B, 4 H), or (4 H) for all rows, usually
/// x W_x + b, with the arguments of i, o, u and, for every child, of f; the states of N ≥ 1 children, each (B, H); W_h
/// (N H, (3 + N) H) → the state of the node (B, H). a = [p_i, p_o, p_u, p_f, …, p_f] + [h_1, …, h_N] W_h;
/// i, o, u, f_k = σ(a_i), σ(a_o), tanh(a_u), σ(a_k); c' = i u + Σ f_k c_k; h' = o tanh(c').
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (2015),
/// equations 9 to 14, whose U^f_kl are the blocks of W_h.
LSTMState tree_lstm_cell(const Arg& p, std::span<const LSTMState> children, const Arg& W_h);
/// A node of an N-ary Tree-LSTM with the product of its children's outputs: p (B, 4 H), or (4 H) for all rows, usually
/// x W_x + b, with the arguments of i, o, u and, for every child, of f; the states of N ≥ 1 children, each (B, H); W_h
/// (N H, (3 + N) H) → the state of the node (B, H). a = [p_i, p_o, p_u, p_f, …, p_f] + [h_1, …, h_N] W_h;
/// i, o, u, f_k = σ(a_i), σ(a_o), tanh(a_u), σ(a_k); c' = i u + Σ f_k c_k; h' = o tanh(c').
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (2015),
/// equations 9 to 14, whose U^f_kl are the blocks of W_h.
inline LSTMState tree_lstm_cell(const Arg& p, std::initializer_list<LSTMState> children, const Arg& W_h) {
  return tree_lstm_cell(p, std::span(children.begin(), children.size()), W_h);
}

/// One step of a gated recurrent unit: x (B, I), h (B, H) → the next h (B, H). r = σ(p_r + q_r + b_r), z = σ(p_z + q_z
/// + b_z), n = tanh(p_n + b_n + r (q_n + b_m)) with p = x W_x and q = h W_h; h' = (1 − z) n + z h.
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
/// Source: Cho et al. (2014), with the reset gate behind the product as in cuDNN.
Tensor gru_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights);

/// One step of a plain recurrent net: x (B, I), h (B, H) → the next h = act(x W_x + h W_h + b) (B, H).
/// Throws: ShapeError unless the sizes fit; DTypeError unless all tensors have one floating dtype; Error for an
/// undefined one.
Tensor rnn_cell(const Arg& x, const Arg& h, const RecurrentWeights& weights,
                RNNActivation activation = RNNActivation::tanh);

/// Options of `lstm` and `gru`.
struct RecurrentOptions {
  /// (B), of i32 or i64, in [0, T]: how many steps each example has; undefined (default): all T. They are read on the
  /// CPU: lengths on the CPU need no wait for a GPU.
  Tensor lengths = {};
  /// Whether each layer has a second net in reverse, whose outputs are concatenated to those of the first. Default
  /// false.
  bool bidirectional = false;
};

/// The result of `lstm`.
struct LSTMOutput {
  Tensor output;  ///< (T, B, H), with two directions (T, B, 2 H): h after each step, of the last layer
  Tensor h_n;     ///< (nets, B, H): h after each net's last step
  Tensor c_n;     ///< (nets, B, H): c after each net's last step
};

/// The result of `gru` and `rnn`.
struct RecurrentOutput {
  Tensor output;  ///< (T, B, H), with two directions (T, B, 2 H): h after each step, of the last layer
  Tensor h_n;     ///< (nets, B, H): h after each net's last step
};

/// Layers of long short-term memories over a sequence: x (T, B, I), state (nets, B, H) or undefined for zeros → the
/// outputs of the last layer and the final states. `weights` has one element a layer, with `.bidirectional` two:
/// forward, then reverse; the input of a later layer is the output of the previous one. With `.lengths`, x is ignored
/// behind the last step of an example, and the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's LSTM, over packed sequences.
LSTMOutput lstm(const Arg& x, const LSTMState& state, std::span<const RecurrentWeights> weights,
                const RecurrentOptions& options = {});
/// A single layer of long short-term memories over a sequence, in one direction: x (T, B, I), state (nets, B, H) or
/// undefined for zeros → the outputs and the final states. With `.lengths`, x is ignored behind the last step of an
/// example, and the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's LSTM, over packed sequences.
inline LSTMOutput lstm(const Arg& x, const LSTMState& state, const RecurrentWeights& weights,
                       const RecurrentOptions& options = {}) {
  return lstm(x, state, std::span(&weights, 1), options);
}

/// Layers of gated recurrent units over a sequence: x (T, B, I), h (nets, B, H) or undefined for zeros → the outputs of
/// the last layer and the final states. `weights` has one element a layer, with `.bidirectional` two: forward, then
/// reverse; the input of a later layer is the output of the previous one. With `.lengths`, x is ignored behind the last
/// step of an example, and the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's GRU, over packed sequences.
RecurrentOutput gru(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RecurrentOptions& options = {});
/// A single layer of gated recurrent units over a sequence, in one direction: x (T, B, I), h (nets, B, H) or undefined
/// for zeros → the outputs and the final states. With `.lengths`, x is ignored behind the last step of an example, and
/// the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's GRU, over packed sequences.
inline RecurrentOutput gru(const Arg& x, const Tensor& h, const RecurrentWeights& weights,
                           const RecurrentOptions& options = {}) {
  return gru(x, h, std::span(&weights, 1), options);
}

/// Options of `rnn`.
struct RNNOptions {
  /// (B), of i32 or i64, in [0, T]: how many steps each example has; undefined (default): all T. They are read on the
  /// CPU: lengths on the CPU need no wait for a GPU.
  Tensor lengths = {};
  /// Whether each layer has a second net in reverse, whose outputs are concatenated to those of the first. Default
  /// false.
  bool bidirectional = false;
  /// The activation of all nets. Default RNNActivation::tanh.
  RNNActivation activation = RNNActivation::tanh;
};

/// Layers of plain recurrent nets over a sequence: x (T, B, I), h (nets, B, H) or undefined for zeros → the outputs of
/// the last layer and the final states. `weights` has one element a layer, with `.bidirectional` two: forward, then
/// reverse; the input of a later layer is the output of the previous one. With `.lengths`, x is ignored behind the last
/// step of an example, and the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's RNN, over packed sequences.
RecurrentOutput rnn(const Arg& x, const Tensor& h, std::span<const RecurrentWeights> weights,
                    const RNNOptions& options = {});
/// A single layer of plain recurrent nets over a sequence, in one direction: x (T, B, I), h (nets, B, H) or undefined
/// for zeros → the outputs and the final states. With `.lengths`, x is ignored behind the last step of an example, and
/// the output is 0 there.
/// Throws: IndexError for a length outside [0, T]; ShapeError unless the sizes fit; DTypeError unless all tensors have
/// one floating dtype; Error for an undefined one.
/// Source: PyTorch's RNN, over packed sequences.
inline RecurrentOutput rnn(const Arg& x, const Tensor& h, const RecurrentWeights& weights,
                           const RNNOptions& options = {}) {
  return rnn(x, h, std::span(&weights, 1), options);
}

}  // namespace reel
