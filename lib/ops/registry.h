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
  bool needs_device = false;
};

/// The family and the list of each source file of lib/ops and lib/autograd that has ops; each defines its list at its end.
#define REEL_OP_LISTS(LIST)                 \
  LIST(create, create_ops)                  \
  LIST(random, random_ops)                  \
  LIST(random, dropout_ops)                 \
  LIST(random, sampling_ops)                \
  LIST(unary, unary_ops)                    \
  LIST(exponential, exponential_ops)        \
  LIST(trigonometric, trigonometric_ops)    \
  LIST(special, special_ops)                \
  LIST(arithmetic, arithmetic_ops)          \
  LIST(comparison, comparison_ops)          \
  LIST(bitwise, bitwise_ops)                \
  LIST(selection, selection_ops)            \
  LIST(cast, cast_ops)                      \
  LIST(reduce, reduce_ops)                  \
  LIST(reduce, statistics_ops)              \
  LIST(reduce, scan_ops)                    \
  LIST(reduce, cumulative_extreme_ops)      \
  LIST(reduce, quantile_ops)                \
  LIST(reduce, histogram_ops)               \
  LIST(reduce, norm_ops)                    \
  LIST(reduce, distance_ops)                \
  LIST(shape, shape_ops)                    \
  LIST(shape, slice_ops)                    \
  LIST(shape, concat_ops)                   \
  LIST(shape, pad_ops)                      \
  LIST(shape, diagonal_ops)                 \
  LIST(shape, repeat_ops)                   \
  LIST(shape, batch_ops)                    \
  LIST(index, index_ops)                    \
  LIST(index, indexing_ops)                 \
  LIST(index, sort_ops)                     \
  LIST(index, unique_ops)                   \
  LIST(index, mask_ops)                     \
  LIST(index, take_ops)                     \
  LIST(index, row_ops)                      \
  LIST(index, scatter_reduce_ops)           \
  LIST(in_place, in_place_ops)              \
  LIST(access, access_ops)                  \
  LIST(matmul, matmul_ops)                  \
  LIST(matmul, einsum_ops)                  \
  LIST(matmul, product_ops)                 \
  LIST(linear_algebra, solve_ops)           \
  LIST(linear_algebra, decompose_ops)       \
  LIST(linear_algebra, lu_ops)              \
  LIST(linear_algebra, least_squares_ops)   \
  LIST(linear_algebra, matrix_function_ops) \
  LIST(sparse, sparse_ops)                  \
  LIST(activation, activation_ops)          \
  LIST(activation, sparsemax_ops)           \
  LIST(activation, composed_activation_ops) \
  LIST(softmax, softmax_ops)                \
  LIST(normalise, layer_norm_ops)           \
  LIST(normalise, batch_norm_ops)           \
  LIST(normalise, group_norm_ops)           \
  LIST(normalise, normalize_ops)            \
  LIST(convolution, convolution_ops)        \
  LIST(pooling, pooling_ops)                \
  LIST(resample, resample_ops)              \
  LIST(resample, unfold_ops)                \
  LIST(resample, pixel_shuffle_ops)         \
  LIST(resample, grid_sample_ops)           \
  LIST(recurrent, recurrent_cell_ops)       \
  LIST(recurrent, weight_product_ops)       \
  LIST(recurrent, lstm_step_ops)            \
  LIST(recurrent, tree_step_ops)            \
  LIST(recurrent, tree_cell_ops)            \
  LIST(recurrent, recurrent_ops)            \
  LIST(recurrent, whole_layer_ops)          \
  LIST(attention, attention_ops)            \
  LIST(embedding, embedding_ops)            \
  LIST(loss, loss_ops)                      \
  LIST(loss, regression_loss_ops)           \
  LIST(loss, binary_loss_ops)               \
  LIST(loss, margin_loss_ops)               \
  LIST(loss, label_loss_ops)                \
  LIST(loss, ctc_ops)                       \
  LIST(tape, deferred_product_ops)          \
  LIST(tape, row_gradient_ops)              \
  LIST(tape, stop_gradient_ops)             \
  LIST(tape, backward_pass_ops)

#define REEL_DECLARE(family, list) std::span<const RegisteredOp> list();
REEL_OP_LISTS(REEL_DECLARE)
#undef REEL_DECLARE

/// The list of one family with its name.
struct OpFamily {
  const char* name;
  std::span<const RegisteredOp> ops;
};

/// All ops, by family.
std::span<const OpFamily> registered_ops();

}  // namespace reel::detail
