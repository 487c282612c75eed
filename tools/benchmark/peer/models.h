#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "../models/workloads.h"

namespace reel_bench {

/// The unit of a time: per operation, or operations per second.
struct Unit {
  const char* name;
  double operations;    ///< in one run
  double milliseconds;  ///< of the unit; 0: it is a rate, in operations a second
  /// Converts the milliseconds of one run.
  double of(double time) const { return milliseconds > 0 ? time / operations / milliseconds : operations / time * 1e3; }
};

/// A comparison of one of reel's versions of a workload with one of libtorch's.
struct Row {
  std::string variant;       ///< empty: the workload itself
  std::size_t ours, theirs;  ///< which ways
  double goal;               ///< of our time over theirs; 0: none
  double dynet;              ///< DyNet's time over libtorch's, as it was measured elsewhere; 0: not measured
};

/// A workload and its versions in both libraries. The results of the first versions must agree.
struct ModelCase {
  std::string name;
  Unit unit;
  std::vector<Row> rows;
  std::function<std::vector<Work>()> ours, theirs;
};

std::vector<ModelCase> model_cases();

// libtorch's versions of the workloads in workloads.h.

at::Tensor torch_drawn(std::uint64_t seed, float scale, const std::vector<std::int64_t>& sizes);

Work torch_op_chain(bool inference_mode);
Work torch_op_chain_backward();
Work torch_product_tanh();
Work torch_square_product(at::ScalarType type);
Work torch_lstm_by_hand(std::int64_t batch, std::int64_t size);
Work torch_lstm_layer(int steps, std::int64_t batch, std::int64_t size);
Work torch_mlp();
Work torch_cnn();

/// Training of the Tree-LSTM.
class TorchTreeTraining {
 public:
  TorchTreeTraining();
  /// One epoch over the trees, node by node or, by level, all nodes of a minibatch of one height at once. Returns the sum of
  /// the losses.
  double epoch(const std::vector<Tree>& trees, int minibatch, bool by_level);

 private:
  std::vector<at::Tensor> parameters_;
};
Work torch_tree_lstm(int minibatch, bool by_level);

}  // namespace reel_bench
