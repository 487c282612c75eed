#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <reel/batching.h>
#include <reel/reel.h>

#include "trees.h"

namespace reel_bench {

/// Runs a workload once and returns one of its results, so that other versions of it can be checked.
using Work = std::function<double()>;

/// The values of drawn(seed, scale, …).
reel::Tensor drawn_tensor(std::uint64_t seed, float scale, const reel::Shape& shape);

// Each function prepares a workload. All sizes that other versions must share are here.

inline constexpr int chain_length = 1000;
inline constexpr std::int64_t chain_size = 64;
/// 500 times x a, then + b, on vectors; nothing is recorded.
Work op_chain();
/// 500 times x a, then + b, with gradients of all three: record, backward, free.
Work op_chain_backward();

inline constexpr int product_count = 200;
inline constexpr std::int64_t product_size = 128;
/// 200 times tanh(h W), h (1, 128), both with gradients, forward and backward.
Work product_tanh();

/// The implementation of an LSTM's step.
enum class LSTMForm : std::uint8_t {
  cell,       ///< nn::LSTMCell on each step's input
  projected,  ///< nn::LSTMCell, the inputs' products of all steps at once
  composed,   ///< [x, h] W + b, four chunks, sigmoid and tanh
};
inline constexpr int lstm_steps = 50;
/// lstm_steps steps in a loop, with inputs and states of equal size, forward and backward of Σ h_T.
Work lstm_by_hand(LSTMForm form, std::int64_t batch, std::int64_t size);
/// lstm_steps steps of the layer `lstm`, forward and backward of all outputs.
Work lstm_layer(int steps, std::int64_t batch, std::int64_t size);
/// lstm_steps steps of one example with 512 inputs and states, by nn::LSTMCell or nn::LSTM, whose weights are rounded to
/// `weight_dtype` unless it is f32: forward, or forward and backward of Σ h_T. Before each pass the weights become new
/// versions, as by an optimiser's step.
Work lstm_of_weight_dtype(bool layer, bool trains, reel::DType weight_dtype);

/// The implementation of a Tree-LSTM's node.
enum class TreeForm : std::uint8_t {
  cell,      ///< tree_lstm_cell
  composed,  ///< chunks, sigmoid and tanh
};
/// How the trees of a minibatch are batched.
enum class TreeBatching : std::uint8_t {
  examples,  ///< batch_map over recursive code
  siblings,  ///< the same, with both() for the two children
  by_level,  ///< by hand: all nodes of one height at once
};
/// The inner nodes that have an extra cell, on their own state and that of the right child, for their parent to read.
struct ExtraCells {
  enum class Source : std::uint8_t {
    predicted,  ///< where the index of the largest element of h is even; the decisions are recorded
    recorded,   ///< where it was so; no value is read
  };
  explicit ExtraCells(const std::vector<Tree>& trees);

  Source source = Source::predicted;
  std::vector<std::vector<std::uint8_t>> of_tree;  ///< decisions by tree and node
};
/// A Tree-LSTM and its training.
class TreeTraining {
 public:
  explicit TreeTraining(double learning_rate = tree_net::learning_rate);
  /// One pass over the trees; the sum of the losses.
  double epoch(const std::vector<Tree>& trees, int minibatch, TreeForm form = TreeForm::cell);
  /// One pass over the trees, batched; the sum of the losses. `extra`: null for none.
  double epoch_in_batches(const std::vector<Tree>& trees, int minibatch, TreeBatching form,
                          const reel::BatchOptions& options = {}, ExtraCells* extra = nullptr);

 private:
  std::vector<reel::Tensor> parameters_;
  reel::optim::SGD sgd_;
};
/// Training on sampled_trees().
Work tree_lstm(int minibatch, TreeForm form = TreeForm::cell);

inline constexpr std::int64_t batch_size = 64;
/// A training step of 784-1024-1024-10 with ReLU, cross-entropy and plain gradient descent.
Work mlp();
/// A training step of two convolutions 1 → 32 → 64 of 3 × 3 with ReLU, max pooling by 2, 9216-128-10, cross-entropy and
/// plain gradient descent.
Work cnn();

inline constexpr std::int64_t matrix_size = 2048;
/// A product of two square matrices.
Work square_product(reel::DType dtype);

/// A recurrent net h = tanh(h W), T = 50, (32, 512), W a tenth less than a permutation, forward and backward: from small
/// initial values and gradients everything that it computes is smaller than 1.2e-38. `flushed`: with the setting that
/// treats such numbers as zero.
Work vanishing(bool small, bool flushed);

/// A workload for the runner of benchmarks.
struct Workload {
  std::string name;
  int operations;       ///< by which time and instructions are divided
  double nanoseconds;   ///< per operation, not to be exceeded on a machine like that of the issue; 0: none
  double instructions;  ///< per operation, not to be exceeded; 0: none
  std::function<Work()> make;
};
std::vector<Workload> workloads();

}  // namespace reel_bench
