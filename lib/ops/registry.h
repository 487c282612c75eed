#pragma once

#include <span>

#include "../dispatch/invoke.h"

namespace reel::detail {

/// A public op, or one that only gradients use.
struct RegisteredOp {
  const char* name;
  /// Null: the op is composed of other ops.
  const OpInfo* info = nullptr;
  /// The op is used by gradients only.
  bool internal = false;
  /// The op needs a device other than the CPU; tests/cuda has its tests.
  bool between_devices = false;
};

// Each source file of this folder defines one list at its end; registry.cpp joins them.
std::span<const RegisteredOp> access_ops();
std::span<const RegisteredOp> activation_ops();
std::span<const RegisteredOp> arithmetic_ops();
std::span<const RegisteredOp> attention_ops();
std::span<const RegisteredOp> batch_norm_ops();
std::span<const RegisteredOp> binary_loss_ops();
std::span<const RegisteredOp> cast_ops();
std::span<const RegisteredOp> comparison_ops();
std::span<const RegisteredOp> concat_ops();
std::span<const RegisteredOp> convolution_ops();
std::span<const RegisteredOp> create_ops();
std::span<const RegisteredOp> ctc_ops();
std::span<const RegisteredOp> decompose_ops();
std::span<const RegisteredOp> diagonal_ops();
std::span<const RegisteredOp> dropout_ops();
std::span<const RegisteredOp> embedding_ops();
std::span<const RegisteredOp> exponential_ops();
std::span<const RegisteredOp> group_norm_ops();
std::span<const RegisteredOp> in_place_ops();
std::span<const RegisteredOp> index_ops();
std::span<const RegisteredOp> indexing_ops();
std::span<const RegisteredOp> resample_ops();
std::span<const RegisteredOp> layer_norm_ops();
std::span<const RegisteredOp> loss_ops();
std::span<const RegisteredOp> margin_loss_ops();
std::span<const RegisteredOp> mask_ops();
std::span<const RegisteredOp> matmul_ops();
std::span<const RegisteredOp> norm_ops();
std::span<const RegisteredOp> pad_ops();
std::span<const RegisteredOp> pooling_ops();
std::span<const RegisteredOp> random_ops();
std::span<const RegisteredOp> recurrent_cell_ops();
std::span<const RegisteredOp> recurrent_ops();
std::span<const RegisteredOp> reduce_ops();
std::span<const RegisteredOp> regression_loss_ops();
std::span<const RegisteredOp> repeat_ops();
std::span<const RegisteredOp> sampling_ops();
std::span<const RegisteredOp> scan_ops();
std::span<const RegisteredOp> selection_ops();
std::span<const RegisteredOp> shape_ops();
std::span<const RegisteredOp> slice_ops();
std::span<const RegisteredOp> softmax_ops();
std::span<const RegisteredOp> solve_ops();
std::span<const RegisteredOp> sort_ops();
std::span<const RegisteredOp> sparse_ops();
std::span<const RegisteredOp> sparsemax_ops();
std::span<const RegisteredOp> special_ops();
std::span<const RegisteredOp> statistics_ops();
std::span<const RegisteredOp> take_ops();
std::span<const RegisteredOp> tree_cell_ops();
std::span<const RegisteredOp> trigonometric_ops();
std::span<const RegisteredOp> unary_ops();
std::span<const RegisteredOp> unfold_ops();
// Lists from lib/autograd and lib/ops/shape.
std::span<const RegisteredOp> deferred_product_ops();
std::span<const RegisteredOp> row_gradient_ops();
std::span<const RegisteredOp> stop_gradient_ops();
std::span<const RegisteredOp> backward_pass_ops();

/// The list of one family with its name.
struct OpFamily {
  const char* name;
  std::span<const RegisteredOp> ops;
};

/// All ops, by family.
std::span<const OpFamily> registered_ops();

}  // namespace reel::detail
