#pragma once

#include <initializer_list>
#include <span>

#include <reel/nn/module.h>
#include <reel/ops/recurrent.h>

// Cells for the nodes of trees: `tree_lstm_cell`, whose equations stand in ops/recurrent.h, with parameters. A node has an
// input x (B, I), or none, and the states of its children, each (B, H); B nodes at once have equally many children.
//
//     LSTMState read(const Node& node) {
//       if (node.is_leaf()) return cell(embedding(node.word));
//       return cell(nn::no_input, {read(node.left), read(node.right)});
//     }
//
// Hooks see x, then h and c of each child.
// Source: Tai et al., Improved semantic representations from tree-structured long short-term memory networks (ACL 2015).

namespace reel::nn {

using reel::LSTMState;

/// The input of a node that has none.
inline const Tensor no_input;

struct TreeLSTMOptions {
  /// Added to the forget gates' bias when they start.
  double forget_bias = 0;
  /// Of W_x, of the matrices for h and of the bias, each gate's block by itself; null: uniform on ±1/√H.
  Initialiser input_initialiser = {}, recurrent_initialiser = {}, bias_initialiser = {};
  DType dtype = DType::f32;
  /// Null: this thread's generator.
  Generator* generator = nullptr;
};

/// A node of any number of children, whose order does not matter:
/// p = x W_x + b    a_i, a_o, a_u = p_i, p_o, p_u + (Σ h_k) W_h    a_k = p_f + h_k W_f. Without an input p = b.
struct ChildSumTreeLSTM : Module {
  Parameter W_x;   ///< (I, 4H): i, o, u, f
  Parameter W_h;   ///< (H, 3H): i, o, u
  Parameter W_f;   ///< (H, H)
  Parameter bias;  ///< (4H): i, o, u, f

  /// Throws: ShapeError unless both sizes are positive.
  ChildSumTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, TreeLSTMOptions options = {},
                   Location where = Location::here());
  ChildSumTreeLSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
                   TreeLSTMOptions options = {}, Location where = Location::here())
      : ChildSumTreeLSTM(input_size, hidden_size, options, where) {
    join(parent, name, where);
  }

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return W_f.size(0); }

  /// The state of a node. Throws: ShapeError unless x is (B, I) and each h and c (B, H); DTypeError unless they have the
  /// weights' dtype; Error for neither x nor children.
  LSTMState operator()(const Arg& x, std::span<const LSTMState> children) const;
  LSTMState operator()(const Arg& x, std::initializer_list<LSTMState> children = {}) const {
    return (*this)(x, std::span(children.begin(), children.size()));
  }
};

/// A node of up to N children, each with matrices of its own:
/// p = x W_x + b    a_i, a_o, a_u = p_i, p_o, p_u + Σ_l h_l W_l    a_k = p_f + Σ_l h_l W_lk. Without an input p = b.
struct NaryTreeLSTM : Module {
  Parameter W_x;   ///< (I, 4H): i, o, u, f
  Parameter W_h;   ///< (N H, (3 + N) H): a row of blocks for each child; i, o, u, f_1 … f_N
  Parameter bias;  ///< (4H): i, o, u, f

  /// Throws: ShapeError unless the sizes are positive and there is a child at least.
  NaryTreeLSTM(std::int64_t input_size, std::int64_t hidden_size, std::int64_t children, TreeLSTMOptions options = {},
               Location where = Location::here());
  NaryTreeLSTM(Module& parent, std::string_view name, std::int64_t input_size, std::int64_t hidden_size,
               std::int64_t children, TreeLSTMOptions options = {}, Location where = Location::here())
      : NaryTreeLSTM(input_size, hidden_size, children, options, where) {
    join(parent, name, where);
  }

  std::int64_t input_size() const { return W_x.size(0); }
  std::int64_t hidden_size() const { return bias.size(0) / 4; }
  /// The most that a node can have.
  std::int64_t children() const { return W_h.size(0) / hidden_size(); }

  /// The state of a node; of fewer children than N, the first have their places. Throws: as ChildSumTreeLSTM; ShapeError for
  /// more than N.
  LSTMState operator()(const Arg& x, std::span<const LSTMState> children) const;
  LSTMState operator()(const Arg& x, std::initializer_list<LSTMState> children = {}) const {
    return (*this)(x, std::span(children.begin(), children.size()));
  }
};

}  // namespace reel::nn
