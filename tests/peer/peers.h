#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/table/table.h"

// libtorch's counterparts of the table's ops.

namespace reel_test {

using Peer = std::function<at::Tensor(const std::vector<at::Tensor>& x, const Attributes& attributes)>;
/// By the op's name.
using Peers = std::map<std::string, Peer>;

/// Returns true if an op's gradient divides by differences of eigenvalues or singular values.
bool is_decomposition(const std::string& op);
/// The amplification of rounding in the gradient of such an op at x (…, M, N): ‖A‖ over the smallest distance of two eigenvalues,
/// or of two singular values or one of them from 0. At least 1.
double amplification(const std::string& op, const at::Tensor& x);

/// Σ |terms| of each element of the gradient of `shifted(x)`'s eigenvectors' or singular vectors' squares, in f64; undefined if the
/// row has another result.
at::Tensor decomposition_terms(const std::string& op, const at::Tensor& x, const Attributes& attributes,
                               const at::Tensor& seed);
/// Σ |d x̂| for each element of the weight of a normalisation y = x̂ w + b, in f64; undefined if the op is none or has no weight.
at::Tensor weight_terms(const std::string& op, const std::vector<at::Tensor>& x, const Attributes& attributes,
                        const at::Tensor& seed);

// By family.
void add_create_peers(Peers& peers);
void add_elementwise_peers(Peers& peers);
void add_reduce_peers(Peers& peers);
void add_shape_peers(Peers& peers);
void add_index_peers(Peers& peers);
void add_in_place_peers(Peers& peers);
void add_matmul_peers(Peers& peers);
void add_network_peers(Peers& peers);
void add_activation_peers(Peers& peers);
void add_resample_peers(Peers& peers);
void add_normalise_peers(Peers& peers);
void add_pooling_peers(Peers& peers);
void add_convolution_peers(Peers& peers);
void add_recurrent_peers(Peers& peers);
void add_attention_peers(Peers& peers);
void add_embedding_peers(Peers& peers);
void add_loss_peers(Peers& peers);
void add_ctc_peers(Peers& peers);
void add_linear_algebra_peers(Peers& peers);
void add_sparse_peers(Peers& peers);

}  // namespace reel_test
