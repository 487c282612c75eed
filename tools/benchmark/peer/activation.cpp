#include <memory>

#include "cases.h"
#include "operands.h"

// Softmax over the rows of a batch of logits, and activations bound by memory.

namespace reel_bench {

namespace {

using reel::Tensor;

constexpr std::int64_t rows = 4096, classes = 1000, million = 1'000'000;
constexpr double megabytes = 4.0 * rows * classes;

using Softmax = Tensor (*)(const reel::Arg&, int, const reel::SoftmaxOptions&);
using TorchSoftmax = at::Tensor (*)(const at::Tensor&);
using TorchGradient = at::Tensor (*)(const at::Tensor& d, const at::Tensor& y);

// The first backward is not timed: a persistent tape computes the gradient again.
struct Recorded {
  reel::Tape tape{{.persistent = true}};
  Tensor x, y;
};

void add_softmax(std::vector<PeerEntry>& entries, const std::string& name, reel::DType dtype, Softmax ours,
                 TorchSoftmax theirs, TorchGradient their_gradient) {
  double bytes = megabytes * (dtype == reel::DType::f32 ? 1 : 0.5);
  entries.push_back(
      {"softmax", name, [=] {
         Pair x = both(to(numbers({rows, classes}, -4, 4).ours, dtype));
         return PeerCase{"softmax", name, 2 * bytes, "GB/s", [=] { ours(x.ours, -1, {}); }, [=] { theirs(x.theirs); }};
       }});
  entries.push_back({"softmax", name + " backward", [=] {
                       Pair x = both(to(numbers({rows, classes}, -4, 4).ours, dtype));
                       Pair d = both(to(numbers({rows, classes}).ours, dtype));
                       auto kept = std::make_shared<Recorded>();
                       kept->x = x.ours;
                       kept->tape.watch(kept->x);
                       kept->y = ours(kept->x, -1, {});
                       TorchRecords records;
                       at::Tensor y = theirs(x.theirs);
                       return PeerCase{"softmax",
                                       name + " backward",
                                       3 * bytes,
                                       "GB/s",
                                       [=] { kept->tape.gradient(kept->y, kept->x, {.seed = d.ours}); },
                                       [=] { their_gradient(d.theirs, y); }};
                     }});
}

void add_activation(std::vector<PeerEntry>& entries, const std::string& name, Tensor (*ours)(const Tensor&),
                    at::Tensor (*theirs)(const at::Tensor&)) {
  entries.push_back({"activation", name, [=] {
                       Pair x = numbers({million}, -4, 4);
                       return PeerCase{
                           "activation", name, 8.0 * million, "GB/s", [=] { ours(x.ours); }, [=] { theirs(x.theirs); }};
                     }});
}

}  // namespace

std::vector<PeerEntry> activation_cases() {
  std::vector<PeerEntry> entries;
  auto softmax = [](const at::Tensor& x) { return at::softmax(x, -1); };
  auto log_softmax = [](const at::Tensor& x) { return at::log_softmax(x, -1); };
  auto gradient = [](const at::Tensor& d, const at::Tensor& y) {
    return at::_softmax_backward_data(d, y, -1, y.scalar_type());
  };
  auto log_gradient = [](const at::Tensor& d, const at::Tensor& y) {
    return at::_log_softmax_backward_data(d, y, -1, y.scalar_type());
  };
  add_softmax(entries, "softmax", reel::DType::f32, reel::softmax, softmax, gradient);
  add_softmax(entries, "log_softmax", reel::DType::f32, reel::log_softmax, log_softmax, log_gradient);
  add_softmax(entries, "softmax of bf16", reel::DType::bf16, reel::softmax, softmax, gradient);
  add_activation(
      entries, "leaky_relu", [](auto& x) { return reel::leaky_relu(x); }, [](auto& x) { return at::leaky_relu(x); });
  add_activation(
      entries, "gelu", [](auto& x) { return reel::gelu(x); }, [](auto& x) { return at::gelu(x); });
  add_activation(
      entries, "gelu by tanh", [](auto& x) { return reel::gelu(x, {.approximate = reel::GeluApproximation::tanh}); },
      [](auto& x) { return at::gelu(x, "tanh"); });
  add_activation(
      entries, "silu", [](auto& x) { return reel::silu(x); }, [](auto& x) { return at::silu(x); });
  add_activation(
      entries, "elu", [](auto& x) { return reel::elu(x); }, [](auto& x) { return at::elu(x); });
  add_activation(
      entries, "softplus", [](auto& x) { return reel::softplus(x); }, [](auto& x) { return at::softplus(x); });
  return entries;
}

}  // namespace reel_bench
