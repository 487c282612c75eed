#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "../core/op.h"

namespace reel::detail {

/// The ops of one source file.
using OpList = std::span<const OpInfo* const>;

// Each source file of lib/ops and lib/autograd that has ops defines its list at its end.
OpList create_ops(), random_ops(), sampling_ops(), unary_ops(), exponential_ops(), trigonometric_ops(), special_ops(),
    arithmetic_ops(), comparison_ops(), bitwise_ops(), selection_ops(), cast_ops(), reduce_ops(), statistics_ops(),
    scan_ops(), cumulative_extreme_ops(), norm_ops(), shape_ops(), slice_ops(), concat_ops(), pad_ops(), diagonal_ops(),
    batch_ops(), index_ops(), indexing_ops(), sort_ops(), mask_ops(), take_ops(), scatter_reduce_ops(), in_place_ops(),
    matmul_ops(), solve_ops(), decompose_ops(), lu_ops(), least_squares_ops(), sparse_ops(), activation_ops(),
    softmax_ops(), layer_norm_ops(), batch_norm_ops(), group_norm_ops(), convolution_ops(), pooling_ops(),
    resample_ops(), unfold_ops(), recurrent_cell_ops(), weight_product_ops(), lstm_step_ops(), tree_step_ops(),
    tree_cell_ops(), recurrent_ops(), fused_layer_ops(), attention_ops(), embedding_ops(), loss_ops(),
    element_loss_ops(), ctc_ops(), deferred_product_ops(), row_gradient_ops(), stop_gradient_ops(), backward_pass_ops();

/// A public function without an OpInfo whose calls are recorded as those of an op of another name.
struct OpAlias {
  const char* name;
  const char* op;
};

/// Ops that share a header, a folder and kernels.
struct OpFamily {
  const char* name;
  std::vector<const OpInfo*> ops;
  /// Public functions without an OpInfo that run several ops.
  std::vector<const char*> composed;
  std::vector<OpAlias> aliases;
};

/// All ops, by family.
std::span<const OpFamily> registered_ops();

/// The op that calls of the function of that name are recorded as, of several the public one; null if there is none.
const OpInfo* find_op(std::string_view name);
/// Returns true if the function of that name runs several ops.
bool is_composed(std::string_view name);

}  // namespace reel::detail
