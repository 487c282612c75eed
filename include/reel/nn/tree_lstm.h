#pragma once

#include <initializer_list>
#include <span>

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

/// \file
/// Cells for the nodes of trees: `tree_lstm_cell`, whose equations are in ops/recurrent.h, with parameters. A node has
/// an input x (B, I), or none, and the states of its children, each (B, H); B nodes at once have equally many children.
///
///     LSTMState read(const Node& node) {
///       if (node.is_leaf()) return cell(embedding(node.word));
///       return cell(nn::no_input, {read(node.left), read(node.right)});
///     }
///
/// Hooks observe x, then h and c of each child.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (ACL
/// 2015).

namespace reel::nn {

/// The state of an LSTM.
using reel::LSTMState;

/// The input of a node that has none. It is the library's, so that a program has nothing of reel's to destroy at its end.
extern const Tensor no_input;

/// Options of ChildSumTreeLSTM and NaryTreeLSTM.
struct TreeLSTMOptions {
  /// Added to the initial bias of the forget gates. Default 0.
  double forget_bias = 0;
  Initialiser input_initialiser = {},  ///< of W_x, by gates; null (default): uniform on ±1/√H
      recurrent_initialiser = {},      ///< of the matrices for h, by gates; null (default): uniform on ±1/√H
      bias_initialiser = {};           ///< of the bias, by gates; null (default): uniform on ±1/√H
  DType dtype = DType::f32;            ///< the parameters' dtype, floating; default f32
  /// The generator of the initial values; null (default): this thread's `default_generator()`.
  Generator* generator = nullptr;
};

/// A child-sum Tree-LSTM: a node of any number of children, whose order does not matter. With p = x W_x + b, or b
/// without an input: a_i, a_o, a_u = p_i, p_o, p_u + (Σ h_k) W_h; a_k = p_f + h_k W_f; then `tree_lstm_cell`.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (ACL
/// 2015), section 3.1.
struct ChildSumTreeLSTM : Module {
  Parameter W_x;   ///< (I, 4H): i, o, u, f
  Parameter W_h;   ///< (H, 3H): i, o, u
  Parameter W_f;   ///< (H, H)
  Parameter bias;  ///< (4H): i, o, u, f

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes are positive.
  ChildSumTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, TreeLSTMOptions options = {},
                   Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes are
  /// positive.
  ChildSumTreeLSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
                   TreeLSTMOptions options = {}, Location where = Location::here())
      : ChildSumTreeLSTM(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  /// The width I of the input.
  std::int64_t input_size() const { return W_x.size(0); }
  /// The width H of the states.
  std::int64_t hidden_size() const { return W_f.size(0); }

  /// The state of a node, h and c (B, H), from its input x (B, I), or `no_input`, and the states of its children.
  /// Throws: ShapeError unless x is (B, I) and each h and c (B, H); DTypeError unless they have the dtype of the
  /// weights; Error for neither x nor children.
  LSTMState operator()(const Arg& x, std::span<const LSTMState> children) const;
  /// The state of a node, h and c (B, H), from its input x (B, I), or `no_input`, and the states of its children.
  /// Throws: ShapeError unless x is (B, I) and each h and c (B, H); DTypeError unless they have the dtype of the
  /// weights; Error for neither x nor children.
  LSTMState operator()(const Arg& x, std::initializer_list<LSTMState> children = {}) const {
    return (*this)(x, std::span(children.begin(), children.size()));
  }
};

/// An N-ary Tree-LSTM: a node of up to N children, each with matrices of its own. With p = x W_x + b, or b without an
/// input: a_i, a_o, a_u = p_i, p_o, p_u + Σ_l h_l W_l; a_k = p_f + Σ_l h_l W_lk; then `tree_lstm_cell`.
/// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (ACL
/// 2015), section 3.2.
struct NaryTreeLSTM : Module {
  Parameter W_x;   ///< (I, 4H): i, o, u, f
  Parameter W_h;   ///< (N H, (3 + N) H): a row of blocks for each child; i, o, u, f_1 … f_N
  Parameter bias;  ///< (4H): i, o, u, f

  /// A layer by itself, not part of a module.
  /// Throws: ShapeError unless all sizes and the number of children are positive.
  NaryTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, std::int64_t children, TreeLSTMOptions options = {},
               Location where = Location::here());
  /// A layer that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot; ShapeError unless all sizes and the
  /// number of children are positive.
  NaryTreeLSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
               std::int64_t children, TreeLSTMOptions options = {}, Location where = Location::here())
      : NaryTreeLSTM(input_size, hidden_size, children, options, where) {
    join(parent, name, where);
  }

  /// The width I of the input.
  std::int64_t input_size() const { return W_x.size(0); }
  /// The width H of the states.
  std::int64_t hidden_size() const { return bias.size(0) / 4; }
  /// The most children that a node can have, N.
  std::int64_t children() const { return W_h.size(0) / hidden_size(); }

  /// The state of a node, h and c (B, H), from its input x (B, I), or `no_input`, and the states of its children; fewer
  /// children than N are the first ones.
  /// Throws: ShapeError unless x is (B, I) and each h and c (B, H), and for more than N children; DTypeError unless
  /// they have the dtype of the weights; Error for neither x nor children.
  LSTMState operator()(const Arg& x, std::span<const LSTMState> children) const;
  /// The state of a node, h and c (B, H), from its input x (B, I), or `no_input`, and the states of its children; fewer
  /// children than N are the first ones.
  /// Throws: ShapeError unless x is (B, I) and each h and c (B, H), and for more than N children; DTypeError unless
  /// they have the dtype of the weights; Error for neither x nor children.
  LSTMState operator()(const Arg& x, std::initializer_list<LSTMState> children = {}) const {
    return (*this)(x, std::span(children.begin(), children.size()));
  }
};

}  // namespace reel::nn
