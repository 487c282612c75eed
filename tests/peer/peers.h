#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/table.h"

// What libtorch calls the ops of the table.

namespace reel_test {

using Peer = std::function<at::Tensor(const std::vector<at::Tensor>& x, const Attributes& attributes)>;
/// By the op's name.
using Peers = std::map<std::string, Peer>;

/// Bounds of the errors of the inputs' gradients, in units in the last place of 1, where `seed` is the gradient of the
/// result: by an analysis of each rounding on the way.
using GradientErrors = std::function<Arrays(const Arrays& x, const Attributes& attributes, const Array& seed)>;
/// Of the recurrent ops, by name.
std::map<std::string, GradientErrors> recurrent_gradient_errors();

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
void add_pool_peers(Peers& peers);
void add_convolve_peers(Peers& peers);
void add_recurrent_peers(Peers& peers);
void add_attend_peers(Peers& peers);
void add_loss_peers(Peers& peers);
void add_ctc_peers(Peers& peers);
void add_linear_algebra_peers(Peers& peers);
void add_sparse_peers(Peers& peers);

}  // namespace reel_test
