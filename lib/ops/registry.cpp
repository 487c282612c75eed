#include "registry.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace reel::detail {
namespace {

OpFamily family(const char* name, std::initializer_list<OpList> lists, std::initializer_list<const char*> composed = {},
                std::initializer_list<OpAlias> aliases = {}) {
  OpFamily made{name, {}, composed, aliases};
  for (OpList list : lists) std::ranges::copy(list, std::back_inserter(made.ops));
  return made;
}

}  // namespace

std::span<const OpFamily> registered_ops() {
  static const OpFamily families[] = {
      family(
          "create", {create_ops()}, {"tri", "tensor", "logspace"},
          {{"zeros", "full"}, {"ones", "full"}, {"zeros_like", "full"}, {"ones_like", "full"}, {"full_like", "full"}}),
      family("random", {random_ops(), sampling_ops()},
             {"variational_dropout", "dropout2d", "alpha_dropout", "gumbel_softmax"},
             {{"rand_like", "rand"}, {"randn_like", "randn"}}),
      family("unary", {unary_ops()}),
      family("exponential", {exponential_ops()}),
      family("trigonometric", {trigonometric_ops()}),
      family("special", {special_ops()}),
      family("arithmetic", {arithmetic_ops()}, {"xlogy"}),
      family("comparison", {comparison_ops()}, {"isclose", "allclose"}),
      family("bitwise", {bitwise_ops()}, {"bitwise_not"}),
      family("selection", {selection_ops()}),
      family("cast", {cast_ops()}),
      family("reduce", {reduce_ops(), statistics_ops(), scan_ops(), cumulative_extreme_ops(), norm_ops()},
             {"cosine_similarity", "pairwise_distance", "cdist", "bincount", "histc", "quantile", "mean",
              "count_nonzero", "sum_to", "median"}),
      family("shape", {shape_ops(), slice_ops(), concat_ops(), pad_ops(), diagonal_ops(), batch_ops()},
             {"diagonal", "diag_embed", "trace", "tile", "repeat", "roll", "meshgrid", "contiguous", "select"},
             {{"tril", "band"},
              {"triu", "band"},
              {"view", "reshape"},
              {"flatten", "reshape"},
              {"transpose", "permute"},
              {"unsqueeze", "reshape"},
              {"squeeze", "reshape"},
              {"chunk", "split"}}),
      family("index", {index_ops(), indexing_ops(), sort_ops(), mask_ops(), take_ops(), scatter_reduce_ops()},
             {"masked_fill", "masked_select", "masked_scatter", "index_copy", "index_fill", "argsort", "kthvalue",
              "bucketize", "unique"}),
      family("in_place", {in_place_ops()}, {"clamp_", "masked_fill_", "index_put_"}, {{"fill_", "copy_"}}),
      family("access", {}, {"item", "data", "write"}),
      family("matmul", {matmul_ops()}, {"einsum", "bmm", "outer", "dot", "tensordot", "kron", "cross"}),
      family("linear_algebra", {solve_ops(), decompose_ops(), lu_ops(), least_squares_ops()},
             {"matrix_rank", "lstsq", "matrix_norm", "cholesky_solve", "matrix_exp", "logdet"}),
      family("sparse", {sparse_ops()}, {"csr_matrix", "csr_from_coordinates", "csr_from_dense", "to_dense"}),
      family("activation", {activation_ops()}, {"glu", "sparsemax"}),
      family("softmax", {softmax_ops()}),
      family("normalise", {layer_norm_ops(), batch_norm_ops(), group_norm_ops()}, {"normalize", "local_response_norm"}),
      family("convolution", {convolution_ops()}),
      family("pooling", {pooling_ops()}, {"max_unpool1d", "max_unpool2d", "max_unpool3d"}),
      family("resample", {resample_ops(), unfold_ops()},
             {"affine_grid", "grid_sample", "pixel_shuffle", "pixel_unshuffle"}),
      family("recurrent", {recurrent_cell_ops(), weight_product_ops(), lstm_step_ops(), tree_step_ops(),
                           tree_cell_ops(), recurrent_ops(), fused_layer_ops()}),
      family("attention", {attention_ops()}),
      family("embedding", {embedding_ops()}),
      family("loss", {loss_ops(), element_loss_ops(), ctc_ops()},
             {"multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "hinge_loss",
              "hinge_embedding_loss", "cosine_embedding_loss", "triplet_margin_loss", "poisson_nll_loss",
              "gaussian_nll_loss"}),
      family("tape", {deferred_product_ops(), row_gradient_ops(), stop_gradient_ops(), backward_pass_ops()}),
  };
  return families;
}

const OpInfo* find_op(std::string_view name) {
  const OpInfo* found = nullptr;
  for (const OpFamily& family : registered_ops()) {
    for (const OpInfo* op : family.ops)
      if (op->name == name && (!found || found->internal)) found = op;
    for (const OpAlias& alias : family.aliases)
      if (alias.name == name) return find_op(alias.op);
  }
  return found;
}

bool is_composed(std::string_view name) {
  return std::ranges::any_of(registered_ops(), [&](const OpFamily& family) {
    return std::ranges::find(family.composed, name) != family.composed.end();
  });
}

}  // namespace reel::detail
