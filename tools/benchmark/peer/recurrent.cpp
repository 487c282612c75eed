#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <fmt/format.h>
#include <reel/reel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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
  std::vector<at::Tensor> theirs;  // transposed, in libtorch's layout, and two biases

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

struct State {
  Pair x = numbers({batch, size}), h = numbers({batch, size}), c = numbers({batch, size});
};

void add_cell(std::vector<PeerEntry>& entries, const std::string& op, std::int64_t gates,
              const std::function<void(const Net& net, const State& state)>& ours,
              const std::function<void(const State& state, const std::vector<at::Tensor>& weights)>& theirs) {
  std::string name = fmt::format("{} B={} H={}", op, batch, size);
  entries.push_back({"recur", name, [=] {
                       auto net = std::make_shared<Net>(gates, 4);
                       auto state = std::make_shared<State>();
                       return PeerCase{"recur",
                                       name,
                                       work(gates, 1) / steps,
                                       "GFLOP/s",
                                       [=] { ours(*net, *state); },
                                       [=] { theirs(*state, net->theirs); }};
                     }});
}

using Clock = std::chrono::steady_clock;

// ms of a layer forward or, with its gradients, backward too.
double time_of(const Tensor& x, const RecurrentWeights& weights, const Tensor& lengths, bool backward) {
  Clock::time_point start = Clock::now();
  if (backward) {
    reel::Tape tape;
    std::vector<Tensor> sources{x, weights.W_x, weights.W_h, weights.bias};
    for (const Tensor& source : sources) tape.watch(source);
    Tensor y = reel::lstm(x, {}, weights, {.lengths = lengths}).output;
    tape.gradient(y, sources, {.seed = reel::ones(y.shape())});
  } else {
    reel::lstm(x, {}, weights, {.lengths = lengths});
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

void ragged_lstm() {
  constexpr std::int64_t longest = 200, width = 256;
  std::vector<std::int64_t> counts(longest);
  std::iota(counts.begin(), counts.end(), 1);
  std::shuffle(counts.begin(), counts.end(), std::mt19937_64(7));
  Tensor lengths = reel::tensor(counts);
  // 1 + 2 + … + 200 = 100 × 201.
  Tensor ragged = reel::rand({longest, longest, width}), full = reel::rand({100, 201, width});
  double bound = 1 / std::sqrt(static_cast<double>(width));
  auto drawn = [&](const reel::Shape& shape) { return reel::rand(shape) * (2 * bound) - bound; };
  RecurrentWeights weights{drawn({width, 4 * width}), drawn({width, 4 * width}), drawn({4 * width})};
  fmt::print("\n{:<44}{:>12}{:>12}{:>8}{:>14}\n", "lstm over 20100 steps, ms", "lengths 1-200", "100 x 201", "ratio",
             "goal");
  for (bool backward : {false, true}) {
    std::vector<double> ragged_times, full_times, ratios;
    for (int round = 0; round < 7; ++round) {
      ragged_times.push_back(time_of(ragged, weights, lengths, backward));
      full_times.push_back(time_of(full, weights, {}, backward));
      ratios.push_back(ragged_times.back() / full_times.back());
    }
    double ratio = median(ratios);
    fmt::print("{:<44}{:>12.1f}{:>12.1f}{:>8.2f}{:>14}\n", backward ? "  forward, backward" : "  forward",
               median(ragged_times), median(full_times), ratio, ratio <= 1.2 ? "1.20 met" : "1.20 MISSED");
  }
}

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
  add_cell(
      entries, "lstm_cell", 4,
      [](const Net& net, const State& state) {
        reel::lstm_cell(state.x.ours, {state.h.ours, state.c.ours}, net.ours);
      },
      [](const State& state, const std::vector<at::Tensor>& w) {
        at::lstm_cell(state.x.theirs, {state.h.theirs, state.c.theirs}, w[0], w[1], w[2], w[3]);
      });
  add_cell(
      entries, "gru_cell", 3,
      [](const Net& net, const State& state) { reel::gru_cell(state.x.ours, state.h.ours, net.ours); },
      [](const State& state, const std::vector<at::Tensor>& w) {
        at::gru_cell(state.x.theirs, state.h.theirs, w[0], w[1], w[2], w[3]);
      });
  return entries;
}

}  // namespace reel_bench
