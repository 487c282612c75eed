#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

std::int64_t reduction_of(Given given) {
  const at::Reduction::Reduction reductions[] = {at::Reduction::None, at::Reduction::Sum, at::Reduction::Mean};
  return reductions[given.integer("reduction")];
}

at::Tensor reduced(const at::Tensor& losses, std::int64_t reduction) {
  return reduction == at::Reduction::None ? losses : reduction == at::Reduction::Sum ? losses.sum() : losses.mean();
}

// None if there are none.
c10::optional<at::Tensor> weights_of(Given given, const at::Tensor& x) {
  const Attributes::Numbers& numbers = given.numbers("weights");
  if (numbers.empty()) return {};
  return at::tensor(at::ArrayRef<double>(numbers), x.options().requires_grad(false));
}

}  // namespace

void add_loss_peers(Peers& peers) {
  peers["mse_loss"] = [](Tensors x, Given given) { return at::mse_loss(x[0], x[1], reduction_of(given)); };
  peers["l1_loss"] = [](Tensors x, Given given) { return at::l1_loss(x[0], x[1], reduction_of(given)); };
  peers["huber_loss"] = [](Tensors x, Given given) {
    return at::huber_loss(x[0], x[1], reduction_of(given), given.number("width"));
  };
  peers["smooth_l1_loss"] = [](Tensors x, Given given) {
    return at::smooth_l1_loss(x[0], x[1], reduction_of(given), given.number("width"));
  };
  peers["poisson_nll_loss"] = [](Tensors x, Given given) {
    return at::poisson_nll_loss(x[0], x[1], given.flag("logarithms"), given.flag("full"), 1e-8, reduction_of(given));
  };
  peers["binary_cross_entropy"] = [](Tensors x, Given given) {
    return at::binary_cross_entropy(x[0] * 0.25, x[1] * 0.5, {}, reduction_of(given));
  };
  peers["binary_cross_entropy_with_logits"] = [](Tensors x, Given given) {
    return at::binary_cross_entropy_with_logits(x[0], x[1], {}, {}, reduction_of(given));
  };
  peers["kl_div"] = [](Tensors x, Given given) {
    bool by_batch = given.integer("reduction") == 3;
    if (by_batch) return at::kl_div(x[0], x[1], at::Reduction::Sum) / static_cast<double>(x[0].size(0));
    return at::kl_div(x[0], x[1], reduction_of(given), given.flag("logarithms"));
  };
  peers["hinge_loss"] = [](Tensors x, Given given) {
    at::Tensor losses = at::relu(given.number("width") - x[1] * x[0]);
    return reduced(losses, reduction_of(given));
  };
  peers["hinge_embedding_loss"] = [](Tensors x, Given given) {
    return at::hinge_embedding_loss(x[0], x[1], given.number("margin"), reduction_of(given));
  };
  peers["cosine_embedding_loss"] = [](Tensors x, Given given) {
    return at::cosine_embedding_loss(x[0], x[1], x[2], given.number("margin"), reduction_of(given));
  };
  peers["triplet_margin_loss"] = [](Tensors x, Given given) {
    return at::triplet_margin_loss(x[0], x[1], x[2], given.number("margin"), given.number("p"), 1e-6,
                                   given.flag("swap"), reduction_of(given));
  };
  // ATen has neither; torch.nn.functional composes them, too.
  peers["gaussian_nll_loss"] = [](Tensors x, Given given) {
    at::Tensor losses = (at::log(x[2]) + at::square(x[0] - x[1]) / x[2]) * 0.5;
    if (given.flag("full")) losses = losses + 0.9189385332046727;
    return reduced(losses, reduction_of(given));
  };
  peers["multilabel_soft_margin_loss"] = [](Tensors x, Given given) {
    at::Tensor losses = -(x[1] * at::log_sigmoid(x[0]) + (1 - x[1]) * at::log_sigmoid(-x[0]));
    return reduced(losses.mean(-1), reduction_of(given));
  };
  peers["multi_margin_loss"] = [](Tensors x, Given given) {
    return at::multi_margin_loss(x[0], x[1], given.integer("p"), given.number("margin"), {}, reduction_of(given));
  };
  peers["multilabel_margin_loss"] = [](Tensors x, Given given) {
    return at::multilabel_margin_loss(x[0], x[1], reduction_of(given));
  };
  peers["nll_loss"] = [](Tensors x, Given given) {
    return at::nll_loss_nd(x[0], x[1], weights_of(given, x[0]), reduction_of(given), given.integer("ignored"));
  };
  peers["cross_entropy"] = [](Tensors x, Given given) {
    if (!given.has("weights")) return at::cross_entropy_loss(x[0], x[1], {}, reduction_of(given));
    return at::cross_entropy_loss(x[0], x[1], weights_of(given, x[0]), reduction_of(given), given.integer("ignored"),
                                  given.number("smoothing"));
  };
}

}  // namespace reel_test
