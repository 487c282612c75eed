#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <fmt/format.h>
#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>

#include "cases.h"
#include "operands.h"

namespace reel_bench {

namespace {

using reel::RecurrentWeights;
using reel::Tensor;

constexpr std::int64_t steps = 50, batch = 32, size = 512;

struct Net {
  Pair x;
  RecurrentWeights ours;
  std::vector<at::Tensor> theirs;  // transposed, as they have them, and two biases

  Net(std::int64_t gates, std::int64_t biases) : x(numbers({steps, batch, size}, -1, 1)) {
    double bound = 1 / std::sqrt(static_cast<double>(size));
    Pair W_x = numbers({size, gates * size}, -bound, bound), W_h = numbers({size, gates * size}, -bound, bound);
    Pair bias = numbers({biases * size}, -bound, bound);
    ours = {W_x.ours, W_h.ours, bias.ours};
    at::Tensor b = bias.theirs.slice(0, 0, gates * size);
    theirs = {W_x.theirs.t().contiguous(), W_h.theirs.t().contiguous(), b.clone(), at::zeros_like(b)};
  }
  std::vector<Tensor> sources() const { return {x.ours, ours.W_x, ours.W_h, ours.bias}; }
};

using Ours = std::function<Tensor(const Net& net)>;
using Theirs = std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& weights)>;

// 2 (I + H) G H multiplications and additions a step forward, twice as many backward.
double work(std::int64_t gates, double passes) {
  return passes * 4.0 * static_cast<double>(steps * batch * size) * static_cast<double>(size * gates);
}

void add_net(std::vector<PeerEntry>& entries, const std::string& op, std::int64_t gates, std::int64_t biases,
             const Ours& ours, const Theirs& theirs) {
  std::string shape = fmt::format(" T={} B={} H={}", steps, batch, size);
  std::string forward = op + shape + " forward", both = op + shape + " forward, backward";
  entries.push_back({"recur", forward, [=] {
                       auto net = std::make_shared<Net>(gates, biases);
                       return PeerCase{"recur",
                                       forward,
                                       work(gates, 1),
                                       "GFLOP/s",
                                       [=] { ours(*net); },
                                       [=] { theirs(net->x.theirs, net->theirs); }};
                     }});
  entries.push_back({"recur", both, [=] {
                       TorchRecords records;
                       auto net = std::make_shared<Net>(gates, biases);
                       Tensor seed = reel::ones({steps, batch, size});
                       at::Tensor their_seed = at::ones({steps, batch, size});
                       return PeerCase{"recur",
                                       both,
                                       work(gates, 3),
                                       "GFLOP/s",
                                       [=] {
                                         reel::Tape tape;
                                         for (const Tensor& source : net->sources()) tape.watch(source);
                                         tape.gradient(ours(*net), net->sources(), {.seed = seed});
                                       },
                                       [=] {
                                         TorchRecords records;
                                         std::vector<at::Tensor> sources{net->x.theirs.detach().requires_grad_()};
                                         for (const at::Tensor& weight : net->theirs)
                                           sources.push_back(weight.detach().requires_grad_());
                                         at::Tensor y = theirs(sources[0], {sources.begin() + 1, sources.end()});
                                         torch::autograd::grad({y}, sources, {their_seed});
                                       }};
                     }});
}

at::Tensor zero_state() { return at::zeros({1, batch, size}); }

void add_cells(std::vector<PeerEntry>& entries) {
  std::string name = fmt::format("lstm_cell B={} H={}", batch, size);
  entries.push_back({"recur", name, [=] {
                       auto net = std::make_shared<Net>(4, 4);
                       Pair x = numbers({batch, size}), h = numbers({batch, size}), c = numbers({batch, size});
                       return PeerCase{"recur",
                                       name,
                                       work(4, 1) / steps,
                                       "GFLOP/s",
                                       [=] {
                                         reel::lstm_cell(x.ours, {h.ours, c.ours}, net->ours);
                                       },
                                       [=] {
                                         const auto& w = net->theirs;
                                         at::lstm_cell(x.theirs, {h.theirs, c.theirs}, w[0], w[1], w[2], w[3]);
                                       }};
                     }});
}

}  // namespace

std::vector<PeerEntry> recurrent_cases() {
  std::vector<PeerEntry> entries;
  add_net(
      entries, "lstm", 4, 4, [](const Net& net) { return reel::lstm(net.x.ours, {}, net.ours).output; },
      [](const at::Tensor& x, const std::vector<at::Tensor>& w) {
        return std::get<0>(at::lstm(x, {zero_state(), zero_state()}, w, true, 1, 0, true, false, false));
      });
  add_net(
      entries, "gru", 3, 4, [](const Net& net) { return reel::gru(net.x.ours, {}, net.ours).output; },
      [](const at::Tensor& x, const std::vector<at::Tensor>& w) {
        return std::get<0>(at::gru(x, zero_state(), w, true, 1, 0, true, false, false));
      });
  add_cells(entries);
  return entries;
}

}  // namespace reel_bench
