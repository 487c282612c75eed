#include <torch/csrc/autograd/autograd.h>

#include "peer/peers.h"

namespace reel_test {

namespace {

using Tensors = const std::vector<at::Tensor>&;
using Given = const Attributes&;

at::Tensor parameter(Tensors x, std::size_t i) { return x.size() > i ? x[i] : at::Tensor(); }

at::Tensor numbers(Given given, const char* name, const at::Tensor& like) {
  return at::tensor(given.numbers(name), at::kDouble).to(like.scalar_type());
}

std::vector<std::int64_t> last_sizes(Tensors x, Given given) {
  auto sizes = x[0].sizes();
  return {sizes.end() - given.integer("axes"), sizes.end()};
}

}  // namespace

at::Tensor weight_terms(const std::string& op, const std::vector<at::Tensor>& x, const Attributes& attributes,
                        const at::Tensor& seed) {
  static const Peers normalisations = [] {
    Peers made;
    add_normalise_peers(made);
    return made;
  }();
  auto peer = normalisations.find(op);
  if (peer == normalisations.end() || x.size() < 2) return {};
  at::Tensor weight = at::zeros_like(x[1]).requires_grad_(true), bias = at::zeros_like(x[1]);
  at::Tensor normalised = peer->second({x[0]}, attributes), y = peer->second({x[0], weight, bias}, attributes);
  return torch::autograd::grad({y}, {weight}, {seed.abs() * normalised.sign()})[0];
}

void add_normalise_peers(Peers& peers) {
  peers["layer_norm"] = [](Tensors x, Given given) {
    return at::layer_norm(x[0], last_sizes(x, given), parameter(x, 1), parameter(x, 2), given.number("epsilon"));
  };
  peers["rms_norm"] = [](Tensors x, Given given) {
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = 1; axis <= given.integer("axes"); ++axis) axes.push_back(-axis);
    at::Tensor y = x[0] * at::rsqrt(at::mean(at::square(x[0]), axes, true) + given.number("epsilon"));
    return x.size() > 1 ? y * x[1] : y;
  };
  peers["group_norm"] = [](Tensors x, Given given) {
    return at::group_norm(x[0], given.integer("groups"), parameter(x, 1), parameter(x, 2), given.number("epsilon"),
                          false);
  };
  peers["instance_norm"] = [](Tensors x, Given given) {
    bool last = given.flag("last");
    // Avoids instance_norm, whose gradients in libtorch 1.13 are wrong for one example with channels last.
    at::Tensor images = last ? x[0].movedim(-1, 1).contiguous() : x[0];
    at::Tensor y =
        at::group_norm(images, images.size(1), parameter(x, 1), parameter(x, 2), given.number("epsilon"), false);
    return last ? y.movedim(1, -1) : y;
  };
  peers["batch_norm"] = [](Tensors x, Given given) {
    return at::batch_norm(x[0], parameter(x, 1), parameter(x, 2), numbers(given, "mean", x[0]),
                          numbers(given, "variance", x[0]), given.flag("training"), 0.1, given.number("epsilon"),
                          false);
  };
  // ATen has no normalize and no local_response_norm; torch.nn.functional composes them, too.
  peers["normalize"] = [](Tensors x, Given given) {
    return x[0] / at::norm(x[0], given.number("p"), given.integer("axis"), true).clamp_min(1e-12);
  };
  peers["local_response_norm"] = [](Tensors x, Given given) {
    std::int64_t size = given.integer("size"), channels = x[0].size(1);
    at::Tensor squares = at::constant_pad_nd(at::square(x[0]), {0, 0, size / 2, (size - 1) / 2}), sum;
    for (std::int64_t k = 0; k < size; ++k) {
      at::Tensor part = squares.narrow(1, k, channels);
      sum = sum.defined() ? sum + part : part;
    }
    return x[0] / at::pow(sum * (0.5 / static_cast<double>(size)) + 2, 0.75);
  };
}

}  // namespace reel_test
